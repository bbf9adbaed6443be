import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { expect, test } from 'vitest'
import { keepOwnRequestId } from '../../../http/request/request-id.ts'
import {
  finishRevocations,
  followRevocations,
  hasRevocations,
  type ProviderRevocations,
  readRevocationFacts,
} from './revocations.ts'

const REQUEST = { ip: '127.0.0.1', res: { getHeader: () => undefined } }
const contextOf = (oidc: object | undefined, more: object = {}) =>
  ({ ...REQUEST, ...more, ...(oidc && { oidc }) }) as unknown as KoaContextWithOIDC

/** Reactions that write down what they are asked. */
function noteRevocations() {
  const notes: unknown[] = []
  const revocations: ProviderRevocations = {
    endBrowserSession: async (session) => {
      notes.push(session)
      const facts = { path: '/', httpOnly: true, secure: true, sameSite: 'lax' } as const
      return [
        { ...facts, name: 'kept', value: 'a' },
        { ...facts, name: 'ended', value: '', maxAgeSeconds: 0 },
      ]
    },
    recordTokenFamilyEnd: async (grantId, cause, facts) => {
      notes.push({ grantId, cause, ...facts })
    },
    recordRefusedUser: async () => {},
  }
  return { notes, revocations }
}

test('a client reads its answer when all that ended with it has ended', async () => {
  const provider = new EventEmitter()
  const ended: string[] = []
  const revocations: ProviderRevocations = {
    endBrowserSession: async () => [],
    recordTokenFamilyEnd: async (grantId, cause) => {
      await new Promise(setImmediate)
      ended.push(`${grantId} ${cause}`)
    },
    recordRefusedUser: async () => {},
  }
  followRevocations(provider as unknown as Provider, revocations)
  const ctx = { ...REQUEST, oidc: { route: 'revocation' } } as unknown as KoaContextWithOIDC
  expect(hasRevocations(ctx)).toBe(false)
  for (const tokenFamily of ['one.a', 'two.b']) provider.emit('grant.revoked', ctx, tokenFamily)
  expect([hasRevocations(ctx), ended]).toEqual([true, []])
  await finishRevocations(revocations, ctx)
  expect(ended).toEqual(['one revoked', 'two revoked'])
})

test.each([
  ['revocation', 'revoked'],
  ['token', 'reused'],
  ['end_session_confirm', 'signed out'],
])('what ends a family at %s is recorded as %s, with who asked', async (route, cause) => {
  const provider = new EventEmitter()
  const { notes, revocations } = noteRevocations()
  followRevocations(provider as unknown as Provider, revocations)
  const ctx = contextOf({ route, client: { clientId: 'app' } })
  provider.emit('grant.revoked', ctx, 'one.a')
  await finishRevocations(revocations, ctx)
  expect(notes).toEqual([{ grantId: 'one', cause, clientId: 'app', address: '127.0.0.1', requestId: null }])
})

test('a request is recorded by its own id, and without a client where it has none', () => {
  const raw = {} as IncomingMessage
  const read = () => readRevocationFacts(contextOf({}, { req: raw, res: { getHeader: () => 'chosen' } }))
  expect(read()).toEqual({ clientId: null, address: '127.0.0.1', requestId: 'chosen' })
  keepOwnRequestId(raw, 'own')
  expect(read()).toMatchObject({ requestId: 'own' })
})

test('the form of a sign-out is waited for, and no other request without a revocation', () => {
  const ask = (route: string) => hasRevocations(contextOf({ route }))
  expect([ask('end_session_confirm'), ask('end_session'), hasRevocations(contextOf(undefined))]).toEqual([
    ...[true, false, false],
  ])
})

test('a sign-out ends the session of the browser, and removes its cookies', async () => {
  const finish = async (session: object | undefined) => {
    const { notes, revocations } = noteRevocations()
    const cookies: string[] = []
    const append = (_name: string, text: string) => cookies.push(text)
    await finishRevocations(revocations, contextOf({ route: 'end_session_confirm', session }, { append }))
    return [notes, cookies]
  }
  const session = { destroyed: true, accountId: 'user', browserSession: 'session' }
  expect(await finish(session)).toEqual([
    [{ userId: 'user', sessionId: 'session' }],
    ['kept=a; Path=/; HttpOnly; Secure; SameSite=Lax', 'ended=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax'],
  ])
  for (const other of [
    undefined,
    { ...session, destroyed: false },
    { ...session, accountId: undefined },
    { ...session, browserSession: undefined },
  ])
    expect(await finish(other)).toEqual([[], []])
})
