import type { IdMaker } from '../../base/id.ts'
import type { Random } from '../../base/random.ts'
import { invalidField, notFound, Problem } from '../../http/problem/problem.ts'
import type { RowChange } from '../../http/route/row-route.ts'
import { type CallerHoldings, checkHoldsGrants } from '../../identity/access/delegation.ts'
import type { GuardedFetch } from '../../outbound/guarded-fetch.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { endClientWithNext } from '../exchange/exchange.store.ts'
import { findPermissionsOf } from '../scope/scope.ts'
import {
  type ClientRecord,
  deleteClientRow,
  findClient,
  insertClient,
  lockClient,
  rotateClientSecret,
  updateClient,
} from './client.store.ts'
import { type ClientLogo, keepLogo, removeLogo } from './client-logo.store.ts'
import { checkProof, DEFAULT_PROOF } from './client-proof.ts'
import { createClientSecret } from './client-secret.ts'
import { findRedirectFault, isHttpsOrLoopback } from './redirect-uri.ts'

/** Maximum length of a name, in characters. */
export const NAME_LENGTH_LIMIT = 100

/** Maximum number of redirect URIs, and of post-logout redirect URIs. */
export const URIS_LIMIT = 50

/** Limit of secrets of one client that are valid at once. */
const LIVE_SECRETS_LIMIT = 5

/** Default overlap in which the previous secret stays valid after a rotation. */
export const SECRET_OVERLAP_SECONDS = 24 * 3600

/** Dependencies of the operations on clients. */
export interface ClientDeps {
  ids: IdMaker
  random: Random
  /** For logos. */
  fetch: GuardedFetch
}

/** Whether a client authenticates by a secret. Pure. */
export const hasSecret = ({ type, authMethod }: Pick<ClientRecord, 'type' | 'authMethod'>): boolean =>
  type === 'confidential' && authMethod === 'client_secret_basic'

/** Settings of a client that an administrator decides. */
export type ClientSettings = Omit<ClientRecord, 'id' | 'registration' | 'logoHash' | 'createdAt' | 'updatedAt'>

/** Defaults of a new client. */
export const DEFAULT_SETTINGS: Omit<ClientSettings, 'name' | 'type' | 'redirectUris'> = {
  applicationType: 'web',
  postLogoutRedirectUris: [],
  grantTypes: ['authorization_code', 'refresh_token'],
  scopes: ['openid', 'profile', 'email', 'offline_access'],
  publisher: null,
  isFirstParty: false,
  backchannelLogoutUri: null,
  idTokenAlg: 'ES256',
  isDpopBound: false,
  logoUri: null,
  ...DEFAULT_PROOF,
}

/** Throws a 422 for settings that contradict each other or break a rule of redirect URIs. Pure. */
export function checkSettings(settings: ClientSettings): void {
  const { applicationType, redirectUris, postLogoutRedirectUris, backchannelLogoutUri, grantTypes } = settings
  const lists = { redirect_uris: redirectUris, post_logout_redirect_uris: postLogoutRedirectUris }
  for (const [name, uris] of Object.entries(lists))
    for (const [index, uri] of uris.entries()) {
      const fault = findRedirectFault(uri, applicationType)
      if (fault !== undefined) throw invalidField(`${name}.${index}`, 'redirect_uri', `must ${fault}`)
    }
  if (grantTypes.includes('authorization_code') && redirectUris.length === 0)
    throw invalidField('redirect_uris', 'empty', 'must name at least one URI for the grant type authorization_code')
  if (grantTypes.every((type) => type === 'refresh_token'))
    throw invalidField('grant_types', 'alone', 'must name another grant type beside refresh_token')
  if (backchannelLogoutUri !== null && !isHttpsOrLoopback(URL.parse(backchannelLogoutUri)))
    throw invalidField('backchannel_logout_uri', 'https', 'must be https')
  // Back-Channel Logout section 2.2.
  if (backchannelLogoutUri?.includes('#'))
    throw invalidField('backchannel_logout_uri', 'url_invalid', 'must have no fragment')
  checkProof(settings)
}

/**
 * Checks that `caller` holds, for all accounts, the permissions that the scopes of clients open: a first-party client
 * gets them from every user without a question, and control over a client's redirect URIs or secret gives access to
 * everything that users granted it (docs/contract/oauth.md#power-over-a-client). Throws 403.
 */
function checkMayTrust(caller: CallerHoldings, clients: readonly Pick<ClientSettings, 'scopes'>[]): void {
  const opened = clients.flatMap(({ scopes }) => findPermissionsOf(scopes.join(' ')))
  checkHoldsGrants(
    caller,
    opened.map((pattern) => ({ pattern, place: 'everywhere' })),
    'make, change or take over a client with these scopes',
  )
}

/**
 * Whether a change gives power over the grants of a client: by its redirect URIs, by skipping consent, or by removing
 * scopes, after which the rest could be changed without them. Pure.
 */
function givesPower(before: ClientSettings, after: ClientSettings): boolean {
  const isMoved = JSON.stringify(before.redirectUris) !== JSON.stringify(after.redirectUris)
  const isNarrowed = before.scopes.some((name) => !after.scopes.includes(name))
  const isUnbound = before.isDpopBound && !after.isDpopBound
  const isPushFree = before.isParRequired && !after.isParRequired
  const isFirstParty = before.isFirstParty || after.isFirstParty
  return isFirstParty || isMoved || isNarrowed || isUnbound || isPushFree || isOther(before, after)
}

/** Whether a change replaces the client's authentication, which allows acting as the client. Pure. */
function isOther(before: ClientSettings, after: ClientSettings): boolean {
  const describe = ({ authMethod, jwks, jwksUri }: ClientSettings) => JSON.stringify([authMethod, jwks, jwksUri])
  return describe(before) !== describe(after)
}

/** The client with this id. Throws 404. */
export async function loadClient(db: Database, id: string): Promise<ClientRecord> {
  const client = await findClient(db, { id })
  if (!client) throw notFound('OAuth client')
  return client
}

/** Creates a client. A confidential one gets a secret, which is returned once. Throws 422 and 403. */
export async function createClient(
  deps: ClientDeps,
  db: Database,
  input: { settings: ClientSettings; logo: ClientLogo | undefined; caller: CallerHoldings; now: Date },
): Promise<{ client: ClientRecord; secret: string | null }> {
  const { settings, logo, caller, now } = input
  checkSettings(settings)
  if (settings.isFirstParty) checkMayTrust(caller, [settings])
  const made = hasSecret(settings) ? createClientSecret(deps.random) : undefined
  const id = deps.ids.next<'oauth client'>()
  const logoHash = logo?.hash ?? null
  const client: ClientRecord = {
    ...settings,
    id,
    logoHash,
    registration: 'administrator',
    createdAt: now,
    updatedAt: now,
  }
  await insertClient(db, client, made && { id: deps.ids.next<'oauth client secret'>(), hash: made.hash })
  if (logo) await keepLogo(db, { client: id, ...logo })
  return { client, secret: made?.secret ?? null }
}

/**
 * Changes a client. The change applies to future requests at once; grants are unchanged, for their redirect URIs.
 * Throws 404, 422, and 403 for a change that gives power beyond the caller's permissions.
 */
export async function changeClient(
  db: Database,
  id: string,
  input: {
    settings: Partial<Omit<ClientSettings, 'type' | 'applicationType'>>
    /** Image at `settings.logoUri`. */
    logo: ClientLogo | undefined
    caller: CallerHoldings
    now: Date
  },
): Promise<RowChange<ClientRecord>> {
  const { settings, logo, caller, now } = input
  const { client: before } = await lockExisting(db, id, now)
  const isLogoGiven = settings.logoUri !== undefined
  const client = { ...before, ...settings, ...(isLogoGiven && { logoHash: logo?.hash ?? null }) }
  checkSettings(client)
  if (givesPower(before, client)) checkMayTrust(caller, [before, client])
  if (JSON.stringify(client) === JSON.stringify(before)) return { row: before, before, isChanged: false }
  const changed = { ...client, updatedAt: now }
  await updateClient(db, changed)
  if (logo) await keepLogo(db, { client: changed.id, ...logo })
  else if (isLogoGiven) await removeLogo(db, { client: changed.id })
  return { row: changed, before, isChanged: true }
}

/**
 * Adds a secret, which is returned once. The secrets before it stay valid for `overlapSeconds`, so that the client changes
 * over without an interruption. Throws 404, 409 for a public client and for too many valid secrets, 403.
 */
export async function rotateSecret(
  deps: ClientDeps,
  db: Database,
  { id, overlapSeconds, caller, now }: { id: string; overlapSeconds: number; caller: CallerHoldings; now: Date },
): Promise<{ client: ClientRecord; secret: string }> {
  const { client, liveSecrets } = await lockExisting(db, id, now)
  checkMayTrust(caller, [client])
  if (client.type === 'public') throw new Problem('conflict', 'A public client has no secret.')
  if (!hasSecret(client))
    throw new Problem('conflict', 'A client with private_key_jwt has keys and no secret. Change its keys.')
  if (liveSecrets >= LIVE_SECRETS_LIMIT && overlapSeconds > 0)
    throw new Problem(
      'limit_reached',
      `A client has at most ${LIVE_SECRETS_LIMIT} valid secrets. Rotate with overlap_seconds 0.`,
    )
  const { secret, hash } = createClientSecret(deps.random)
  const overlapUntil = new Date(now.getTime() + overlapSeconds * 1000)
  await rotateClientSecret(db, {
    client: client.id,
    id: deps.ids.next<'oauth client secret'>(),
    hash,
    overlapUntil,
    now,
  })
  return { client: { ...client, updatedAt: now }, secret }
}

/** Deletes a client with its secrets, its grants, every token and every session of its apps, at once. Throws 404. */
export async function deleteClient(db: Database, id: string, now: Date): Promise<ClientRecord> {
  const { client } = await lockExisting(db, id, now)
  await endClientWithNext(db, { clientId: client.id, now })
  await deleteClientRow(db, { id: client.id, now })
  return client
}

async function lockExisting(db: Database, id: string, now: Date) {
  const found = await lockClient(db, id, now)
  if (!found) throw notFound('OAuth client')
  return found
}
