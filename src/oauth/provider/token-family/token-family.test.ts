import type { KoaContextWithOIDC } from 'oidc-provider'
import { expect, test } from 'vitest'
import { systemRandom } from '../../../base/random.ts'
import { findRequestState } from '../state/request-state.ts'
import { findTokenFamily, type TokenFamilyDeps } from './token-family.ts'

const REDIRECT = 'https://app.example.com/callback'

interface Asked {
  /** The user who is signed in in the browser; undefined for none. */
  browserUser?: string | undefined
  redirectUri?: string | undefined
  hasGrant?: boolean
}

/** The family of an authorization of `user-1`, who has allowed the app at `REDIRECT`. */
async function find({ browserUser = 'user-1', redirectUri = REDIRECT, hasGrant = true }: Asked) {
  const saved: object[] = []
  class Grant {
    constructor(facts: object) {
      Object.assign(this, facts)
    }
    async save() {
      saved.push(this)
    }
  }
  const oidc = {
    client: { clientId: 'app', applicationType: 'web', metadata: () => ({ first_party: false }) },
    session: { grantIdFor: () => undefined },
    account: { accountId: 'user-1' },
    provider: { Grant },
    params: { redirect_uri: redirectUri },
  }
  const ctx = { oidc } as unknown as KoaContextWithOIDC
  const state = findRequestState(ctx)!
  state.browser = { userId: browserUser, sessionId: 'session', clientId: 'app' } as unknown as typeof state.browser
  const grant = {
    id: 'grant',
    userId: 'user-1',
    clientId: 'app',
    scopes: ['openid'],
    refusedScopes: [],
    redirectUris: [REDIRECT],
  }
  state.grants.set('user-1 app', hasGrant ? (grant as unknown as ReturnType<typeof state.grants.get>) : undefined)
  const deps = { random: systemRandom, apiResource: 'https://id.test/api/v3' } as TokenFamilyDeps
  const family = await findTokenFamily(deps, ctx)
  expect(saved).toEqual(family ? [family] : [])
  return family
}

test('a new family rests on the grant of the user who is signed in in the browser', async () => {
  const openid = { scope: 'openid', claims: expect.any(Array) }
  expect(await find({})).toMatchObject({ jti: expect.stringMatching(/^grant\../), accountId: 'user-1', openid })
})

test.each<[name: string, asked: Asked]>([
  ['another user', { browserUser: 'user-2' }],
  ['nobody', { browserUser: '' }],
  ['that user, without a grant', { hasGrant: false }],
  ['that user, at a redirect URI without a consent', { redirectUri: 'https://app.example.com/other' }],
])('there is none with %s in the browser', async (_name, asked) => {
  expect(await find(asked)).toBeUndefined()
})
