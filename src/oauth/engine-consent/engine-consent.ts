import { type IdMaker, isUuid, type UserId } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import { isStorableText } from '../../base/stored-text.ts'
import { notFound, Problem } from '../../http/problem/problem.ts'
import { cleanName } from '../../identity/engine/embedded/clean-profile.ts'
import type { SupabaseAnswer, SupabaseClient } from '../../identity/engine/supabase/supabase-client.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { buildEngineAway } from '../exchange/token-issuer.ts'
import {
  type ListedGrant,
  listOpenRevocations,
  noteEndedThere,
  recordEngineGrants,
  upsertEngineGrant,
} from '../grant/engine-grant.store.ts'
import type { GrantId } from '../grant/grant.store.ts'
import { listScopeNames } from '../scope/scope.ts'
import { findScope } from '../scope/scope-catalogue.ts'
import { type ConsentDecision, claimDecision, keepDecision, releaseDecision } from './engine-decision.store.ts'

/** Delay after which an unanswered call of the engine is repeated. */
const CLAIM_MS = 30_000

/** Number of grants of a user that are revoked at the engine at once. */
const REVOCATIONS_AT_ONCE = 10

/** Request of an app: the page shows it, or continues at once where an earlier consent covers it. */
export type AskedConsent =
  | { kind: 'pending'; clientId: string; clientName: string; redirectUri: string; scopes: readonly string[] }
  | { kind: 'covered'; authorizeUrl: string }

/** A user of this service, with its token at the engine. */
export interface EngineUser {
  userId: UserId
  token: string
}

/** A decision accepted by the engine. */
export interface DecidedConsent {
  /** URL at which the browser continues. */
  authorizeUrl: string
  /** The app; null if an earlier consent covers the request, because the engine then names none. */
  clientId: string | null
  /** Granted scopes; null for a denial, for a repeat, and where `clientId` is. */
  grantId: GrantId | null
}

/** Consent at a managed engine (docs/contract/oauth-exchange.md#consent-at-a-managed-engine). */
export interface EngineConsent {
  /**
   * Request of an app to this user. Scopes that the user has removed here are revoked there first, so that the user is
   * asked again. If an earlier consent covers it, the engine's grant is recorded here, so that it is listed and
   * revocable: it may exist only there. Throws 404 for an authorization that is unknown, expired or of another user,
   * and 503 when the engine does not answer.
   */
  describe(db: Database, user: EngineUser, asked: { authorizationId: string; now: Date }): Promise<AskedConsent>
  /**
   * Decides an authorization, and returns the next address of the browser. The engine is called once over all calls and
   * processes; a repeat gets the same address. Throws 404 like `describe`, 409 for another decision or a user other
   * than the first, and 503 when the engine does not answer.
   */
  decide(
    db: Database,
    input: {
      user: EngineUser
      authorizationId: string
      decision: ConsentDecision
      /** Scopes that the user grants to the app; names without a permission belong to the engine and are omitted. */
      scopes: readonly string[]
      now: Date
    },
  ): Promise<DecidedConsent>
  /** Revokes the user's session at the engine that a decision needed. Never rejects. */
  leave(token: string): Promise<void>
}

const contextOf = (authorizationId: string) => `engine decision:${authorizationId}`

/** Builds consent by the authorization endpoints of Supabase Auth, called from this server alone. */
export function buildEngineConsent(deps: {
  client: SupabaseClient
  keyring: Pick<Keyring, 'seal' | 'open'>
  ids: IdMaker
}): EngineConsent {
  const { client, keyring, ids } = deps

  async function describe(
    db: Database,
    user: EngineUser,
    { authorizationId, now }: { authorizationId: string; now: Date },
  ): Promise<AskedConsent> {
    const revoked = await listOpenRevocations(db, { userId: user.userId })
    for (let at = 0; at < revoked.length; at += REVOCATIONS_AT_ONCE)
      await endThere(db, user, revoked.slice(at, at + REVOCATIONS_AT_ONCE))
    const asked = readAsked(checkAnswer(await ask(() => client.readAuthorization(user.token, authorizationId))))
    if (asked.kind === 'covered') await recordCovered(db, user, now)
    return asked
  }

  /** Revokes grants at the engine, which takes one in a call. What has ended is noted, also when another call failed. */
  async function endThere(db: Database, { userId, token }: EngineUser, clientIds: readonly string[]): Promise<void> {
    const results = await Promise.allSettled(
      clientIds.map((clientId) => ask(() => client.revokeGrant(token, clientId))),
    )
    const faults = results.map((result) => {
      if (result.status === 'rejected') return result.reason
      // Grants unknown to the engine are ended.
      return result.value.ok || result.value.status === 404 ? undefined : buildEngineAway(result.value.code)
    })
    const ended = clientIds.filter((_clientId, index) => faults[index] === undefined)
    if (ended.length > 0) await noteEndedThere(db, { userId, clientIds: ended })
    const fault = faults.find((found) => found !== undefined)
    if (fault !== undefined) throw fault
  }

  /** The engine reports its automatic approvals only in its list of grants. */
  async function recordCovered(db: Database, { userId, token }: EngineUser, now: Date): Promise<void> {
    const listed = checkAnswer(await ask(() => client.listGrants(token)))
    const grants = readListed(listed).map((grant) => ({ ...grant, id: ids.next<'oauth grant'>() }))
    if (grants.length > 0) await recordEngineGrants(db, { userId, grants, readAt: now })
  }

  /** The first read makes the user the owner; a consent before that is a 404 at the engine. */
  async function askOnce(
    db: Database,
    input: { user: EngineUser; authorizationId: string; decision: ConsentDecision; now: Date },
  ) {
    const { user, authorizationId, decision } = input
    const asked = await describe(db, user, input)
    if (asked.kind === 'covered') {
      // The engine has approved by itself. A user who denies it sends no code to the app.
      const { authorizeUrl } = asked
      return { authorizeUrl: decision === 'deny' ? buildDenial(authorizeUrl) : authorizeUrl, asked: undefined }
    }
    const answer = await ask(() => client.decideAuthorization(user.token, authorizationId, decision))
    return { authorizeUrl: readUrl(checkAnswer(answer).redirect_url), asked }
  }

  return {
    describe,
    decide: async (db, { user, authorizationId, decision, scopes, now }) => {
      const claimed = await claimDecision(db, {
        ...{ authorizationId, userId: user.userId, decision, now },
        apiScope: decision === 'approve' ? listApiScopes(scopes).join(' ') : '',
        staleBefore: new Date(now.getTime() - CLAIM_MS),
      })
      if (!claimed || (!claimed.isClaimed && claimed.authorizeUrl === null)) throw buildInFlight()
      if (claimed.userId !== user.userId) throw notFound('authorization')
      if (claimed.decision !== decision) throw new Problem('conflict', 'This authorization was decided otherwise.')
      if (claimed.authorizeUrl !== null)
        return {
          authorizeUrl: keyring.open(claimed.authorizeUrl, contextOf(authorizationId)),
          clientId: claimed.clientId,
          grantId: null,
        }
      try {
        const { authorizeUrl, asked } = await askOnce(db, { user, authorizationId, decision, now })
        const sealed = keyring.seal(authorizeUrl, contextOf(authorizationId))
        const clientId = asked?.clientId ?? null
        const grantId = await inTransaction(db, async (tx) => {
          await keepDecision(tx, { authorizationId, clientId, authorizeUrl: sealed, now })
          if (decision === 'deny' || !asked || !isUuid(asked.clientId)) return null
          const granted = [...new Set([...asked.scopes, ...listApiScopes(scopes)])]
          return upsertEngineGrant(tx, {
            ...{ id: ids.next<'oauth grant'>(), userId: user.userId, now },
            ...{ clientId: asked.clientId, clientName: asked.clientName, scopes: granted },
          })
        })
        return { authorizeUrl, clientId, grantId }
      } catch (error) {
        await releaseDecision(db, { authorizationId, claimedAt: now })
        throw error
      }
    },
    leave: (token) => client.endSession(token).catch(() => {}),
  }
}

/** The scopes that open a permission of the API. */
function listApiScopes(scopes: readonly string[]): string[] {
  return listScopeNames(scopes.join(' ')).filter((name) => (findScope(name)?.permissions.length ?? 0) > 0)
}

/** The denial of an app, derived from the approving answer (RFC 6749 section 4.1.2.1). Pure. */
function buildDenial(authorizeUrl: string): string {
  const url = new URL(authorizeUrl)
  url.searchParams.delete('code')
  url.searchParams.set('error', 'access_denied')
  return url.href
}

function buildInFlight(): Problem {
  return new Problem('conflict', 'This authorization is being decided. Try again in some seconds.')
}

async function ask(call: () => Promise<SupabaseAnswer>): Promise<SupabaseAnswer> {
  return call().catch((cause: unknown) => {
    throw buildEngineAway(cause)
  })
}

/** The data of an answer. Throws 404, 409 or 503 for an error. */
function checkAnswer(answer: SupabaseAnswer): Readonly<Record<string, unknown>> {
  if (answer.ok) return answer.data
  if (answer.status >= 500 || answer.status === 429) throw buildEngineAway(answer.code)
  if (answer.status === 400) throw new Problem('conflict', 'This authorization was already decided. Start again.')
  throw notFound('authorization')
}

function readAsked(data: Readonly<Record<string, unknown>>): AskedConsent {
  if (data.redirect_url !== undefined) return { kind: 'covered', authorizeUrl: readUrl(data.redirect_url) }
  const { id, name } = (data.client ?? {}) as { id?: unknown; name?: unknown }
  if (typeof id !== 'string' || !isStorableText(id) || typeof data.redirect_uri !== 'string')
    throw buildEngineAway('NO_CLIENT')
  return {
    kind: 'pending',
    clientId: id,
    // The answer has no name for an unnamed client.
    clientName: cleanName(name) ?? id,
    redirectUri: data.redirect_uri,
    scopes: typeof data.scope === 'string' ? listScopeNames(data.scope).filter(isStorableText) : [],
  }
}

/** Maximum number of grants of a user recorded at once. */
const LISTED_LIMIT = 200

/** The grants in an answer of the engine, one of each app. Pure. */
function readListed(answer: unknown): Omit<ListedGrant, 'id'>[] {
  const found = new Map<string, Omit<ListedGrant, 'id'>>()
  for (const item of Array.isArray(answer) ? answer.slice(0, LISTED_LIMIT) : []) {
    const { client, scopes } = (item ?? {}) as { client?: { id?: unknown; name?: unknown }; scopes?: unknown }
    const clientId = client?.id
    if (typeof clientId !== 'string' || !isUuid(clientId) || !Array.isArray(scopes)) continue
    const names = scopes.filter((name) => typeof name === 'string' && isStorableText(name))
    found.set(clientId.toLowerCase(), { clientId, clientName: cleanName(client?.name) ?? clientId, scopes: names })
  }
  return [...found.values()]
}

function readUrl(value: unknown): string {
  if (typeof value !== 'string' || !URL.canParse(value)) throw buildEngineAway('NO_REDIRECT_URL')
  return value
}
