import { expect, test } from 'vitest'
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
const CELL_OF_OTHERS = ['GET /api/v3/realtime/dashboard/message', 'GET /api/v3/realtime/message']

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
