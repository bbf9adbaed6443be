import { describe, expect, test } from 'vitest'
import { isChange, type RouteDeclaration } from '../../http/route/route.ts'
import { checkRouteMembers } from '../../http/route/route-members.ts'
import { ROUTE_TREE } from './route-tree.ts'

const readers = ROUTE_TREE.filter((route: RouteDeclaration) => route.readsReplica)

describe('the routes that may read a replica', () => {
  test('are lists and dashboards, and none of them decides or shows an access', () => {
    expect(readers.length).toBeGreaterThan(10)
    const deciding = readers.filter(({ path }) =>
      /^\/api\/v3\/(identity|auth|oauth|sso)\b|portal|session|token/.test(path),
    )
    expect(deciding.map(({ path }) => path)).toEqual([])
  })

  test('need a permission, which is checked before, and change nothing', () => {
    for (const route of readers) {
      expect([route.path, route.method, isChange(route)]).toEqual([route.path, 'GET', false])
      expect(['permission', undefined]).toContain(route.access)
    }
  })
})

test.each<[string, Partial<RouteDeclaration>]>([
  ['a change', { method: 'POST' }],
  ['a read that writes', { writes: true }],
  ['a public read', { access: 'public' }],
  ['a read of own rows', { access: 'caller' }],
])('%s cannot declare it: the service does not start', (_what, members) => {
  const route = { method: 'GET', path: '/api/v3/test/test', readsReplica: true, ...members } as const
  expect(() => checkRouteMembers(route, {})).toThrow(/may not read a replica/)
  expect(() => checkRouteMembers({ ...route, method: 'GET', writes: false, access: 'permission' }, {})).not.toThrow()
})
