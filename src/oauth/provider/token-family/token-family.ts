import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { IdMaker, UserId } from '../../../base/id.ts'
import type { Random } from '../../../base/random.ts'
import { listScopesOfClaims } from '../../claims/asked-claims.ts'
import type { ClientId } from '../../client/client.store.ts'
import type { GrantRecord, widenGrant } from '../../grant/grant.store.ts'
import { buildTokenFamilyId, findGrantIdOf } from '../../grant/state-id.ts'
import { buildGrantMembers, createTokenFamilyPart, type GrantMembers } from '../../grant/token-family-members.ts'
import { keepKnownScopes } from '../../scope/scope.ts'
import { findRequestState } from '../state/request-state.ts'
import { type ReadDeps, readGrant } from '../state/state-reader.ts'
import { type RevocationFacts, readRevocationFacts } from './revocations.ts'

/** Dependencies of `findTokenFamily`. */
export interface TokenFamilyDeps extends ReadDeps {
  ids: IdMaker
  random: Random
  apiResource: string
  /** Writes the grant of a first-party client, with its event. Undefined for a deleted client or a disabled user. */
  keepSilentGrant: (row: Parameters<typeof widenGrant>[1], facts: RevocationFacts) => Promise<GrantRecord | undefined>
}

type GrantModel = InstanceType<Provider['Grant']> & { jti: string }

/**
 * The token family of an authorization: that of this browser, else a new one for an earlier grant on any device.
 * Undefined without a grant to this client at this redirect URI, or when the user is no longer signed in in this
 * browser. A first-party web client gets the requested scopes of the catalogue without a question.
 */
export async function findTokenFamily(deps: TokenFamilyDeps, ctx: KoaContextWithOIDC): Promise<GrantModel | undefined> {
  const { oidc } = ctx
  const { client, session, account } = oidc
  if (!client || !session || !account) return undefined
  // An answer from before a sign-out is not the sign-in of the browser's current user.
  if (findRequestState(ctx)?.browser?.userId !== account.accountId) return undefined
  const grant = await findLiveGrant(deps, ctx)
  if (!grant) return undefined
  const known = (oidc.result?.consent?.grantId as string | undefined) ?? session.grantIdFor(client.clientId)
  const found = known !== undefined && findGrantIdOf(known) === grant.id && (await oidc.provider.Grant.find(known))
  const tokenFamily = (found || buildFamily(deps, ctx, grant)) as GrantModel
  const members = buildGrantMembers(grant, deps.apiResource)
  if (found && isSame(tokenFamily, members)) return tokenFamily
  Object.assign(tokenFamily, members)
  await tokenFamily.save()
  return tokenFamily
}

/** Whether a family has the scopes and claims of its grant. */
function isSame({ openid, rejected }: GrantModel, members: GrantMembers): boolean {
  const describe = (part: { scope?: string | undefined; claims?: string[] | undefined } | undefined) => [
    part?.scope,
    part?.claims,
  ]
  const known = [describe(openid), describe(rejected?.openid)]
  return JSON.stringify(known) === JSON.stringify([describe(members.openid), describe(members.rejected?.openid)])
}

function buildFamily(deps: TokenFamilyDeps, { oidc }: KoaContextWithOIDC, grant: GrantRecord): GrantModel {
  const jti = buildTokenFamilyId(grant.id, createTokenFamilyPart(deps.random))
  const facts = { jti, accountId: grant.userId, clientId: grant.clientId }
  return new oidc.provider.Grant(facts) as GrantModel
}

/** Cached per client: `metadata` builds all members at each call. */
const silentClients = new WeakMap<object, boolean>()

function isSilentClient(client: NonNullable<KoaContextWithOIDC['oidc']['client']>): boolean {
  const known = silentClients.get(client)
  if (known !== undefined) return known
  const isSilent = client.metadata().first_party === true && client.applicationType === 'web'
  silentClients.set(client, isSilent)
  return isSilent
}

/** Whether a consent was given for the redirect URI of a request; a device has none. */
function isForRedirect({ redirectUris }: GrantRecord, { oidc }: KoaContextWithOIDC): boolean {
  const { redirect_uri: uri } = oidc.params ?? {}
  return typeof uri !== 'string' || redirectUris.includes(uri)
}

async function findLiveGrant(deps: TokenFamilyDeps, ctx: KoaContextWithOIDC): Promise<GrantRecord | undefined> {
  const { client, account, requestParamScopes, params } = ctx.oidc
  const userId = account?.accountId as UserId
  const clientId = client?.clientId as ClientId
  const grant = await readGrant(deps, { userId, clientId }, ctx)
  const isSilent = client !== undefined && isSilentClient(client)
  if (!isSilent) return grant && isForRedirect(grant, ctx) ? grant : undefined
  const scopes = keepKnownScopes([...requestParamScopes, ...listScopesOfClaims(params?.claims)])
  if (grant && scopes.every((name) => grant.scopes.includes(name))) return grant
  const row = { id: grant?.id ?? deps.ids.next<'oauth grant'>(), userId, clientId, scopes, refusedScopes: [] }
  return deps.keepSilentGrant({ ...row, now: new Date(deps.machineClock.now()) }, readRevocationFacts(ctx))
}
