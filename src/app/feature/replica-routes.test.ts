import { describe, expect, test } from 'vitest'
import { defineRoute, isChange, type RouteDeclaration } from '../../http/route/route.ts'
import { Type } from '../../http/shape/schema-type.ts'
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

const READER: RouteDeclaration = {
  ...{ method: 'GET', path: '/api/v3/test/test', resource: 'test', action: 'find-one', accountScope: 'none' },
  ...{ summary: 'A test', data: Type.Object({}), readsReplica: true },
}
const OUTCOME = { data: {}, message: 'Read.' }

test.each<[string, Partial<RouteDeclaration>]>([
  ['a change', { method: 'POST' }],
  ['a read that writes', { writes: true }],
  ['a public read', { access: 'public' }],
  ['a read of own rows', { access: 'caller' }],
])('%s cannot declare it: the service does not start', (_what, members) => {
  const define = (others: Partial<RouteDeclaration>) => () => defineRoute({ ...READER, ...others }, async () => OUTCOME)
  expect(define(members)).toThrow(/may not read a replica/)
  expect(define({})).not.toThrow()
})
