import { randomBytes } from 'node:crypto'
import { buildIdMaker, type UserId } from '../../../src/base/id.ts'
import { systemRandom } from '../../../src/base/random.ts'
import type { ClientId } from '../../../src/oauth/client/client.store.ts'
import { upsertGrant } from '../../../src/oauth/grant/grant.store.ts'
import { hashStateId } from '../../../src/oauth/grant/state-id.ts'
import { upsertState } from '../../../src/oauth/provider/state/state.store.ts'
import type { TestApp } from '../app/app.ts'

/** Writes an authorization that asks a user for consent, as the provider does. Returns its id. */
export async function addInteraction(
  { database, clock }: TestApp,
  { userId, clientId, scope = 'openid email' }: { userId: string; clientId: string; scope?: string },
): Promise<string> {
  const id = randomBytes(16).toString('base64url')
  const now = clock.now()
  await upsertState(database.db, {
    model: 'Interaction',
    idHash: hashStateId(id),
    payload: {
      kind: 'Interaction',
      iat: Math.floor(now / 1000),
      prompt: { name: 'consent', reasons: ['op_scopes_missing'] },
      params: { client_id: clientId, scope, redirect_uri: 'https://app.example.com/callback' },
      session: { accountId: userId },
      returnTo: `https://id.example.test/api/v3/oauth/authorize/${id}`,
    },
    grantId: null,
    consent: null,
    uid: null,
    userCodeHash: null,
    expiresAt: new Date(now + 1_800_000),
  })
  return id
}

/** Writes what a user allows a client. Returns the id of the grant. */
export async function addGrant(
  { database, clock }: TestApp,
  { userId, clientId }: { userId: string; clientId: string },
): Promise<string> {
  const row = {
    userId: userId as UserId,
    clientId: clientId as ClientId,
    scopes: ['openid'],
    refusedScopes: [],
    redirectUris: [],
  }
  const id = buildIdMaker(clock, systemRandom).next<'oauth grant'>()
  return (await upsertGrant(database.db, { ...row, id, now: new Date(clock.now()) })).id
}
