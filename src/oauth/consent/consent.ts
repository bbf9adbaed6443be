import type { IdMaker, SessionId, UserId } from '../../base/id.ts'
import type { Random } from '../../base/random.ts'
import { invalidField, Problem } from '../../http/problem/problem.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { listScopesOfClaims } from '../claims/asked-claims.ts'
import type { ClientId } from '../client/client.store.ts'
import { endSessionsOfGrant } from '../exchange/exchange.ts'
import { type GrantRecord, upsertGrant } from '../grant/grant.store.ts'
import { buildTokenFamilyId, findGrantIdOf } from '../grant/state-id.ts'
import { buildGrantMembers, createTokenFamilyPart, FAMILY_SECONDS } from '../grant/token-family-members.ts'
import { keepKnownScopes, listScopeNames } from '../scope/scope.ts'
import { findScope } from '../scope/scope-catalogue.ts'
import {
  answerInteraction,
  type ClaimedInteraction,
  claimConsent,
  narrowTokenFamilies,
  writeTokenFamily,
} from './interaction.store.ts'

/** Dependencies of a decision. */
export interface ConsentDeps {
  ids: IdMaker
  random: Random
  /** The identifier of the API as a resource. */
  apiResource: () => string
}

/** Decision of a user. */
export interface Decision {
  /** The id of the authorization that asks. */
  authorizationId: string
  isApproved: boolean
  /** The granted scopes; undefined for all requested ones. */
  scopes: readonly string[] | undefined
  userId: UserId
  /** The session of the decision, which must be valid; null: none is checked. */
  sessionId: SessionId | null
  now: Date
}

/** Recorded decision. */
export interface RecordedDecision {
  /** The grant; null for a refusal. */
  grant: GrantRecord | null
  clientId: string
  /** URL at which the browser continues. */
  authorizeUrl: string
}

/** The scopes of the catalogue that a request asks for, also by the parameter `claims`. */
export function readAskedScopes({ params }: Pick<ClaimedInteraction, 'params'>): string[] {
  const named = typeof params.scope === 'string' ? listScopeNames(params.scope) : []
  return keepKnownScopes([...named, ...listScopesOfClaims(params.claims)])
}

/**
 * The granted and refused scopes, including earlier decisions of the user. Pure. A mandatory scope comes with every
 * approval. Throws a 422 for a scope that was not requested.
 */
export function decideScopes(
  asked: readonly string[],
  chosen: readonly string[] | undefined,
  before: Pick<GrantRecord, 'scopes' | 'refusedScopes'> | undefined,
): Pick<GrantRecord, 'scopes' | 'refusedScopes'> {
  const foreign = chosen?.findIndex((name) => !asked.includes(name)) ?? -1
  if (foreign >= 0) throw invalidField(`scopes.${foreign}`, 'not_asked', 'must be a scope that the app asks for')
  const isGiven = (name: string) =>
    chosen === undefined || chosen.includes(name) || findScope(name)?.isOptional === false
  const given = asked.filter(isGiven)
  const refused = asked.filter((name) => !given.includes(name))
  const scopes = [...new Set([...(before?.scopes ?? []).filter((name) => !refused.includes(name)), ...given])]
  const refusedScopes = [...new Set([...(before?.refusedScopes ?? []), ...refused])]
  return { scopes, refusedScopes: refusedScopes.filter((name) => !scopes.includes(name)) }
}

/**
 * Records a user's decision on an authorization, and passes it to the provider (docs/contract/oauth.md#decision).
 * Throws 404 for an authorization of another user, a decided or expired one, and 422 for a scope that was not
 * requested.
 */
export async function decideConsent(deps: ConsentDeps, db: Database, decision: Decision): Promise<RecordedDecision> {
  const { authorizationId, isApproved, userId, sessionId, now } = decision
  const interaction = await claimConsent(db, { id: authorizationId, userId, sessionId, now })
  if (!interaction)
    throw new Problem('not_found', 'There is no authorization with this id for you, or it was already decided.')
  const clientId = interaction.params.client_id as ClientId
  if (!isApproved) {
    await answerInteraction(db, authorizationId, {
      error: 'access_denied',
      error_description: 'the user declined the request',
    })
    return { grant: null, clientId, authorizeUrl: interaction.returnTo }
  }
  const scopes = decideScopes(readAskedScopes(interaction), decision.scopes, interaction.grant)
  // An earlier grant keeps its id.
  const id = deps.ids.next<'oauth grant'>()
  const redirectUris = listRedirectUris(interaction)
  const grant = await upsertGrant(db, { id, userId, clientId, ...scopes, redirectUris, now })
  if (isNarrowed(interaction.grant, grant)) await narrowGrant(deps, db, { interaction, grant, now })
  const tokenFamilyId = await openTokenFamily(deps, db, { interaction, grant, now })
  await answerInteraction(db, authorizationId, { ...interaction.lastAnswers, consent: { grantId: tokenFamilyId } })
  return { grant, clientId, authorizeUrl: interaction.returnTo }
}

/** The redirect URIs of a consent: those before, and that of the request; a device has none. Pure. */
function listRedirectUris({ params, grant }: ClaimedInteraction): string[] {
  const { redirect_uri: uri } = params
  return [...new Set([...(grant?.redirectUris ?? []), ...(typeof uri === 'string' ? [uri] : [])])]
}

/** Whether a decision removes scopes that the user granted before. Pure. */
function isNarrowed(before: GrantRecord | undefined, { scopes }: GrantRecord): boolean {
  return before?.scopes.some((name) => !scopes.includes(name)) ?? false
}

/** Removes scopes of a grant: ends the sessions of the app, and narrows the families of other browsers. */
async function narrowGrant(
  { apiResource }: ConsentDeps,
  db: Database,
  { interaction, grant, now }: { interaction: ClaimedInteraction; grant: GrantRecord; now: Date },
): Promise<void> {
  await endSessionsOfGrant(db, { grantId: grant.id, isFinal: false, now })
  const members = buildGrantMembers(grant, apiResource())
  await narrowTokenFamilies(db, { grantId: grant.id, except: interaction.tokenFamilyId, members })
}

/** The family of this browser, or a new one, with the scopes of the grant. */
async function openTokenFamily(
  deps: ConsentDeps,
  db: Database,
  { interaction, grant, now }: { interaction: ClaimedInteraction; grant: GrantRecord; now: Date },
): Promise<string> {
  const known = interaction.tokenFamilyId
  const isKnown = known !== null && findGrantIdOf(known) === grant.id
  const tokenFamilyId = isKnown ? known : buildTokenFamilyId(grant.id, createTokenFamilyPart(deps.random))
  const iat = Math.floor(now.getTime() / 1000)
  const exp = iat + FAMILY_SECONDS
  await writeTokenFamily(db, {
    tokenFamilyId,
    grantId: grant.id,
    payload: {
      kind: 'Grant',
      accountId: grant.userId,
      clientId: grant.clientId,
      ...buildGrantMembers(grant, deps.apiResource()),
      iat,
      exp,
    },
    expiresAt: new Date(exp * 1000),
  })
  return tokenFamilyId
}
