import { expect, test } from 'vitest'
import { ROUTE_TREE } from '../../src/app/feature/route-tree.ts'
import { permissionOf, type RouteDeclaration } from '../../src/http/route/route.ts'
import { SCOPES } from '../../src/oauth/scope/scope-catalogue.ts'
import { createTestApp, type TestAnswer, type TestCall } from '../harness/app/app.ts'
import { openClientSession } from '../harness/browser/client-session.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

const READING = ROUTE_TREE.filter((route) => route.access !== 'public' || route.readsCaller)
const NO_ONE = '01990000-0000-7000-8000-000000000000'
const titleOf = (route: RouteDeclaration) => `${route.method} ${route.path}`
const ask = (call: TestCall, route: RouteDeclaration): Promise<TestAnswer> =>
  call(route.method, route.path.replaceAll(/\{\w+\}/g, NO_ONE))
const findOpening = (route: RouteDeclaration) =>
  SCOPES.filter(({ permissions }) => permissions.includes(permissionOf(route))).map(({ name }) => name)

const app = await openForFile(createTestApp())
/** Calls as an app in the name of the administrator, with these scopes. */
const actWith = async (scopes: readonly string[]) =>
  app.callAs((await openClientSession(app, app.adminId, { scope: scopes.join(' ') })).jwt)

test.each(READING.map((route) => [titleOf(route), route] as const))(
  '%s is open to an app exactly with the scopes that name its permission',
  async (_title, route) => {
    const opening = findOpening(route)
    for (const scope of opening) {
      const opened = await ask(await actWith([scope]), route)
      expect([401, 403], JSON.stringify(opened.body)).not.toContain(opened.status)
    }
    const others = SCOPES.map(({ name }) => name).filter((name) => !opening.includes(name))
    const refused = await ask(await actWith(others), route)
    expect(refused.status).toBe(403)
    expect(refused.body.code).toBe('permission_denied')
    expect(refused.headers['www-authenticate']).toBe('Bearer error="insufficient_scope"')
  },
)

test('some routes are open to apps and most are not', () => {
  const open = READING.filter((route) => findOpening(route).length > 0)
  expect(open.length).toBeGreaterThan(20)
  expect(READING.length - open.length).toBeGreaterThan(open.length)
})

test('a route that opens own rows to every user is closed to an app without the scope', async () => {
  const call = await actWith(['openid', 'contract:read'])
  expect((await call('GET', '/api/v3/auth/session')).status).toBe(403)
  expect((await call('GET', '/api/v3/identity/api-key')).status).toBe(403)
})

test('an app of a member reaches no more than the member, whatever its scopes', async () => {
  const member = await app.signInMember()
  const every = SCOPES.map(({ name }) => name).join(' ')
  const call = app.callAs((await openClientSession(app, member.userId, { scope: every })).jwt)
  for (const route of READING.filter((item) => findOpening(item).length > 0)) {
    const [asApp, asMember] = [await ask(call, route), await ask(member.call, route)]
    expect(asApp.status, titleOf(route)).toBe(asMember.status)
  }
})
