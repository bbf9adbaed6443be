import { randomUUID } from 'node:crypto'
import type { KoaContextWithOIDC } from 'oidc-provider'
import { expect, test } from 'vitest'
import type { SessionId, UserId } from '../../../base/id.ts'
import { type BrowserUser, findRequestState } from './request-state.ts'
import { type SessionModel, visitSession } from './session-bridge.ts'

const userId = randomUUID() as UserId
const sessionId = randomUUID() as SessionId
const SIGNED_IN: BrowserUser = { userId, sessionId, amr: ['pwd'], acr: 'aal1', authTime: new Date(1_700_000_000_900) }

interface Kept {
  accountId?: string
  browserSession?: string
  isNew?: boolean
}

/** A visit of a browser, with this user or none, whose provider has this session. */
async function visit({
  user,
  found,
  route = 'authorization',
  query = {},
}: {
  user?: BrowserUser
  found: Kept
  route?: string
  query?: Record<string, unknown>
}) {
  const logins: object[] = []
  const build = (kept: Kept) =>
    Object.assign({ ...kept }, { loginAccount: (details: object) => logins.push(details) }) as never
  const entities: unknown[] = []
  const ctx = {
    ...{ query, req: { headers: { cookie: 'a=b' } } },
    oidc: { route, entity: (...given: unknown[]) => entities.push(given) },
  } as unknown as KoaContextWithOIDC
  // The user that a read would find.
  if (user) findRequestState(ctx).user = Promise.resolve(user)
  const asked: unknown[] = []
  const own = build(found)
  const session = await visitSession(
    { instantiate: () => build({ isNew: true }) } as unknown as SessionModel,
    async () => own,
    {
      findUser: async (cookie: string | undefined) => {
        asked.push(cookie)
        return user && { userId: user.userId, sessionId: user.sessionId }
      },
    } as never,
    ctx,
  )
  const { isNew = false, browserSession } = session as unknown as Kept
  return { isNew, browserSession, logins, asked, entities, session, browser: findRequestState(ctx).browser }
}

const LOGIN = { accountId: userId, loginTs: 1_700_000_000, amr: ['pwd'], acr: 'aal1' }

test('a browser without a user has a session of the provider without one', async () => {
  const kept = await visit({ found: {} })
  expect(kept).toMatchObject({ isNew: false, logins: [], entities: [], asked: ['a=b'], browser: undefined })
  const left = await visit({ found: { accountId: userId, browserSession: sessionId } })
  expect(left).toMatchObject({ isNew: true, logins: [], browserSession: undefined })
  expect(left.entities).toEqual([['Session', left.session]])
})

test('a user who signed in is signed in at the provider, in a new session', async () => {
  const entered = await visit({ user: SIGNED_IN, found: {} })
  expect(entered).toMatchObject({ isNew: true, logins: [LOGIN], browserSession: sessionId })
  expect(entered.entities).toEqual([['Session', entered.session]])
  const other = await visit({ user: SIGNED_IN, found: { accountId: randomUUID(), browserSession: sessionId } })
  expect(other).toMatchObject({ isNew: true, logins: [LOGIN], browserSession: sessionId })
})

test('the session of a user goes on, and takes over a new sign-in of the same user', async () => {
  const same = await visit({ user: SIGNED_IN, found: { accountId: userId, browserSession: sessionId } })
  expect(same).toMatchObject({ isNew: false, logins: [], browserSession: sessionId, entities: [] })
  const again = await visit({ user: SIGNED_IN, found: { accountId: userId, browserSession: randomUUID() } })
  expect(again).toMatchObject({ isNew: false, logins: [LOGIN], browserSession: sessionId, entities: [] })
})

test('a sign-in without a class names none', async () => {
  const { logins } = await visit({ user: { ...SIGNED_IN, acr: null }, found: {} })
  expect(logins).toEqual([{ accountId: userId, loginTs: 1_700_000_000, amr: ['pwd'] }])
})

test('the reads of a request know its browser, and its client where it names one', async () => {
  const of = async (query: Record<string, unknown>) => (await visit({ user: SIGNED_IN, found: {}, query })).browser
  expect(await of({ client_id: 'app' })).toEqual({ userId, sessionId, clientId: 'app' })
  expect(await of({ client_id: ['app', 'other'] })).toEqual({ userId, sessionId, clientId: undefined })
})

test.each([
  ['authorization', true],
  ['resume', true],
  ['code_verification', true],
  ['device_resume', true],
  ['end_session', false],
  ['token', false],
])('the route %s follows the browser: %s', async (route, isFollowing) => {
  const { isNew, asked } = await visit({ route, found: { accountId: userId } })
  expect([isNew, asked.length > 0]).toEqual([isFollowing, isFollowing])
})
