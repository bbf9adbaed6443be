import type { KoaContextWithOIDC } from 'oidc-provider'
import { expect, test } from 'vitest'
import { systemRandom } from '../../../base/random.ts'
import { buildGrantMembers } from '../../grant/token-family-members.ts'
import { findRequestState } from '../state/request-state.ts'
import { findTokenFamily, type TokenFamilyDeps } from './token-family.ts'

const REDIRECT = 'https://app.example.com/callback'

interface Asked {
  /** The user who is signed in in the browser; undefined for none. */
  browserUser?: string | undefined
  redirectUri?: string | undefined
  /** Scopes of the grant; null without one. */
  granted?: string[] | null
  /** Members of the request that differ, such as a missing session. */
  more?: object
  client?: { first_party: boolean; applicationType?: string }
  /** Scopes that the request asks for. */
  asked?: string[]
  /** The family that the browser has, by its session or by the answer to the request. */
  ofSession?: string | undefined
  ofAnswer?: string | undefined
  /** Families that are stored, with the scopes of their tokens. */
  stored?: Record<string, string[]>
  /** Whether the database refuses a grant without a question. */
  isRefused?: boolean
}

const API = 'https://id.test/api/v3'

/** The family of an authorization of `user-1`, who has allowed the app at `REDIRECT`. */
async function look({ browserUser = 'user-1', redirectUri = REDIRECT, granted = ['openid'], ...asked }: Asked) {
  const [saved, kept]: [object[], object[]] = [[], []]
  const { client = { first_party: false }, stored = {} } = asked
  class Grant {
    constructor(facts: object) {
      Object.assign(this, facts)
    }
    async save() {
      saved.push(this)
    }
    static async find(jti: string) {
      const scopes = stored[jti]
      return scopes && new Grant({ jti, ...buildGrantMembers({ scopes, refusedScopes: [] }, API) })
    }
  }
  const oidc = {
    client: { clientId: 'app', applicationType: client.applicationType ?? 'web', metadata: () => client },
    session: { grantIdFor: () => asked.ofSession },
    account: { accountId: 'user-1' },
    provider: { Grant },
    params: { redirect_uri: redirectUri },
    requestParamScopes: new Set(asked.asked),
    result: asked.ofAnswer === undefined ? undefined : { consent: { grantId: asked.ofAnswer } },
    ...asked.more,
  }
  const res = { getHeader: () => undefined }
  const ctx = { oidc, ip: '127.0.0.1', res } as unknown as KoaContextWithOIDC
  const state = findRequestState(ctx)!
  state.browser = { userId: browserUser, sessionId: 'session', clientId: 'app' } as unknown as typeof state.browser
  const grant = { id: 'grant', userId: 'user-1', clientId: 'app', refusedScopes: [], redirectUris: [REDIRECT] }
  const found = granted === null ? undefined : { ...grant, scopes: granted }
  state.grants.set('user-1 app', found as unknown as ReturnType<typeof state.grants.get>)
  const deps = {
    ...{ random: systemRandom, apiResource: API, ids: { next: () => 'new' }, machineClock: { now: () => 7 } },
    keepSilentGrant: async (row: { id: string; scopes: string[] }) => {
      kept.push(row)
      return asked.isRefused ? undefined : { ...grant, id: row.id, scopes: row.scopes }
    },
  } as unknown as TokenFamilyDeps
  return { family: await findTokenFamily(deps, ctx), saved, kept }
}

async function find(asked: Asked) {
  const { family, saved, kept } = await look(asked)
  expect([saved, kept]).toEqual([family ? [family] : [], []])
  return family
}

test('a new family rests on the grant of the user who is signed in in the browser', async () => {
  const openid = { scope: 'openid', claims: expect.any(Array) }
  expect(await find({})).toMatchObject({ jti: expect.stringMatching(/^grant\../), accountId: 'user-1', openid })
})

test.each<[name: string, asked: Asked]>([
  ['another user', { browserUser: 'user-2' }],
  ['nobody', { browserUser: '' }],
  ['that user, without a grant', { granted: null }],
  ['that user, and no client', { more: { client: undefined } }],
  ['that user, and no session', { more: { session: undefined } }],
  ['that user, and no account', { more: { account: undefined } }],
  ['that user, at a redirect URI without a consent', { redirectUri: 'https://app.example.com/other' }],
])('there is none with %s in the browser', async (_name, asked) => {
  expect(await find(asked)).toBeUndefined()
})

test('a device has no redirect URI that a consent must be for', async () => {
  expect(await find({ more: { params: undefined } })).toMatchObject({ accountId: 'user-1' })
})

test('the family of the browser goes on where it rests on the grant, that of an answer first', async () => {
  const stored = { 'grant.one': ['openid'], 'grant.two': ['openid'], 'other.one': ['openid'] }
  const jtiOf = async (asked: Asked) => {
    const { family, saved } = await look({ ...asked, stored })
    return [family?.jti, saved.length]
  }
  const [isNew, isOld] = [expect.stringMatching(/^grant\.[\w-]{22}$/), 'grant.one']
  expect(await jtiOf({ ofSession: 'grant.one' })).toEqual([isOld, 0])
  expect(await jtiOf({ ofSession: 'grant.two', ofAnswer: 'grant.one' })).toEqual([isOld, 0])
  expect(await jtiOf({ ofSession: 'other.one' })).toEqual([isNew, 1])
  expect(await jtiOf({ ofSession: 'grant.gone' })).toEqual([isNew, 1])
  expect(await jtiOf({})).toEqual([isNew, 1])
})

test('a family gets the scopes that its grant has now', async () => {
  const stored = { 'grant.one': ['openid', 'email'] }
  const { family, saved } = await look({ ofSession: 'grant.one', stored })
  expect([family, saved]).toEqual([
    expect.objectContaining({ jti: 'grant.one', openid: expect.objectContaining({ scope: 'openid' }) }),
    [family],
  ])
})

test('a first-party web client gets what it asks for, without a question', async () => {
  const silent = { client: { first_party: true }, asked: ['openid', 'email', 'unheard-of'], redirectUri: 'elsewhere' }
  const row = { userId: 'user-1', clientId: 'app', scopes: ['openid', 'email'], refusedScopes: [], now: new Date(7) }
  const begun = await look({ ...silent, granted: null })
  expect(begun.kept).toEqual([{ ...row, id: 'new' }])
  expect(begun.family).toMatchObject({ jti: expect.stringMatching(/^new\./), openid: { scope: 'openid email' } })
  expect((await look(silent)).kept).toEqual([{ ...row, id: 'grant' }])
  const had = await look({ ...silent, granted: ['email', 'openid', 'profile'] })
  expect([had.kept, had.family?.openid?.scope]).toEqual([[], 'email openid profile'])
  expect((await look({ ...silent, granted: null, isRefused: true })).family).toBeUndefined()
})

test.each<[name: string, client: Asked['client']]>([
  ['of somebody else', { first_party: false }],
  ['that is no web client', { first_party: true, applicationType: 'native' }],
])('a client %s gets no more than the user allowed', async (_name, client) => {
  const asked = { client: client!, asked: ['openid', 'email'] }
  expect((await find(asked))?.openid?.scope).toBe('openid')
  expect(await find({ ...asked, granted: null })).toBeUndefined()
})
