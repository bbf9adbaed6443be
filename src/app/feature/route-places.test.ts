import { expect, test } from 'vitest'
import type { ListFields } from '../../http/listing/listing.ts'
import type { RouteDeclaration } from '../../http/route/route.ts'
import { ROUTE_TREE } from './route-tree.ts'

/** Routes of webhooks that are served in home, with the reason. */
const HOME_OF_WEBHOOKS: Readonly<Record<string, string>> = {
  'GET /api/v3/webhook/mail-setting': 'of a user',
  'PATCH /api/v3/webhook/mail-setting': 'of a user',
  'GET /api/v3/webhook/event': 'event types are reference rows',
  'POST /api/v3/webhook/event': 'event types are reference rows',
  'GET /api/v3/webhook/event/{id}': 'event types are reference rows',
  'PATCH /api/v3/webhook/event/{id}': 'event types are reference rows',
  'PATCH /api/v3/webhook/event/{id}/active': 'event types are reference rows',
  'PATCH /api/v3/webhook/event/{id}/tenant-visible': 'event types are reference rows',
  'POST /api/v3/webhook/catalogue/sync': 'event types are reference rows',
}

/** Routes of other areas whose rows live in cells. */
const CELL_OF_OTHERS = [
  'GET /api/v3/audit/log',
  'GET /api/v3/realtime/dashboard/message',
  'GET /api/v3/realtime/message',
  'POST /api/v3/realtime/realtime/resume',
]

const nameOf = ({ method, path }: RouteDeclaration) => `${method} ${path}`
const isOfWebhooks = ({ path }: RouteDeclaration) => path.startsWith('/api/v3/webhook/')

test('every route of webhooks names what tells its database, or is in home for a reason', () => {
  const inHome = ROUTE_TREE.filter((route) => isOfWebhooks(route) && !route.cell).map(nameOf)
  expect(inHome.sort()).toEqual(Object.keys(HOME_OF_WEBHOOKS).sort())
  const others = ROUTE_TREE.filter((route) => !isOfWebhooks(route) && route.cell).map(nameOf)
  expect(others.sort()).toEqual(CELL_OF_OTHERS)
})

test('a database is told by a list, by an id that the request has, or by the owner in the body', () => {
  for (const route of ROUTE_TREE) {
    const { cell } = route
    const hasId = route.path.includes('{id}')
    const expected = hasId ? 'row' : cell?.by === 'row' ? cell.member : undefined
    if (cell?.by === 'row') expect([nameOf(route), expected]).toEqual([nameOf(route), expected ?? 'an id'])
    else if (cell && cell.by !== 'each') expect([nameOf(route), hasId]).toEqual([nameOf(route), false])
    const takesOwner = JSON.stringify(route.body ?? {}).includes('"is_global"')
    if (takesOwner)
      expect([nameOf(route), cell]).toMatchObject([nameOf(route), cell?.by === 'account' ? {} : { changesOwner: true }])
  }
})

test('a list of rows that live in cells is merged, by keys that every database orders alike', () => {
  const lists = ROUTE_TREE.filter(({ cell, list }: RouteDeclaration) => list && cell)
  expect(lists.length).toBeGreaterThan(6)
  for (const route of lists) {
    const { cell, list } = route as RouteDeclaration & { list: ListFields }
    expect([nameOf(route), cell?.by === 'all' || (cell?.by === 'scope' && cell.several === 'merge')]).toEqual([
      nameOf(route),
      true,
    ])
    for (const [name, { type, sortable, collation }] of Object.entries(list))
      if (sortable && type === 'text') expect([nameOf(route), name, collation]).toEqual([nameOf(route), name, 'C'])
  }
})

test('a change over the rows of a scope is refused where they may be in several databases', () => {
  const changes = ROUTE_TREE.filter(({ method, cell }: RouteDeclaration) => method !== 'GET' && cell?.by === 'scope')
  expect(changes.map(nameOf)).toEqual(['POST /api/v3/webhook/dispatch/replay'])
  for (const { cell } of changes) expect(cell).toMatchObject({ several: 'refuse' })
})
