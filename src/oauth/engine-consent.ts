import type { SupabaseAnswer, SupabaseClient } from '../engine/supabase/supabase-client.ts'
import { notFound, Problem } from '../http/problem.ts'
import type { UserId } from '../id.ts'
import type { Keyring } from '../keyring.ts'
import type { Database } from '../postgres/database.ts'
import { endClientSessions } from '../session/session-list.ts'
import {
  type ConsentDecision,
  claimDecision,
  forgetDecisions,
  keepDecision,
  releaseDecision,
} from './engine-decision.store.ts'
import { listScopeNames } from './scope.ts'
import { findScope } from './scope-catalogue.ts'

/** A question to the engine that was not answered is asked again after this. */
const CLAIM_MS = 30_000

/** What an app asks: the page shows it, or continues at once where an earlier consent covers it. */
export type AskedConsent =
  | { kind: 'pending'; clientId: string; clientName: string; redirectUri: string; scopes: readonly string[] }
  | { kind: 'covered'; authorizeUrl: string }

/** A person at the engine: the user here, and its token there. */
export interface EnginePerson {
  userId: UserId
  token: string
}

/** Consent at a managed engine (docs/contract/oauth-exchange.md#consent-at-a-managed-engine). */
export interface EngineConsent {
  /** What an app asks of this person. Throws 404 for an authorization that is unknown, expired or of another person. */
  describe(person: EnginePerson, authorizationId: string): Promise<AskedConsent>
  /**
   * Decides an authorization, and answers where the browser continues. The engine is asked once, however often and in
   * however many processes this is called; a repeat gets the same address. Throws 404 like `describe`, 409 for another
   * decision or a person other than the first, and 503 when the engine does not answer.
   */
  decide(
    db: Database,
    input: {
      person: EnginePerson
      authorizationId: string
      decision: ConsentDecision
      /** What the person leaves to the app; names that open no permission are the engine's and are left out. */
      scopes: readonly string[]
      now: Date
    },
  ): Promise<{ authorizeUrl: string }>
  /** Removes what a person allowed an app, there and here, and ends the app's sessions in every process. */
  revoke(db: Database, input: { person: EnginePerson; clientId: string; now: Date }): Promise<void>
}

const contextOf = (authorizationId: string) => `engine decision:${authorizationId}`

/** Builds consent by the authorization endpoints of Supabase Auth, called from this server alone. */
export function buildEngineConsent(deps: {
  client: SupabaseClient
  keyring: Pick<Keyring, 'seal' | 'open'>
}): EngineConsent {
  const { client, keyring } = deps

  async function describe(person: EnginePerson, authorizationId: string): Promise<AskedConsent> {
    return readAsked(checkAnswer(await ask(() => client.readAuthorization(person.token, authorizationId))))
  }

  /** Reading first makes the person the owner; a consent before that is a 404 there. */
  async function askOnce(person: EnginePerson, authorizationId: string, decision: ConsentDecision) {
    const asked = await describe(person, authorizationId)
    if (asked.kind === 'covered') return { authorizeUrl: asked.authorizeUrl, clientId: null }
    const answer = await ask(() => client.decideAuthorization(person.token, authorizationId, decision))
    return { authorizeUrl: readUrl(checkAnswer(answer).redirect_url), clientId: asked.clientId }
  }

  return {
    describe,
    decide: async (db, { person, authorizationId, decision, scopes, now }) => {
      const claimed = await claimDecision(db, {
        ...{ authorizationId, userId: person.userId, decision, now },
        apiScope: decision === 'approve' ? listApiScopes(scopes).join(' ') : '',
        staleBefore: new Date(now.getTime() - CLAIM_MS),
      })
      if (!claimed || (!claimed.isClaimed && claimed.authorizeUrl === null)) throw buildInFlight()
      if (claimed.userId !== person.userId) throw notFound('authorization')
      if (claimed.decision !== decision) throw new Problem('conflict', 'This authorization was decided otherwise.')
      if (claimed.authorizeUrl !== null)
        return { authorizeUrl: keyring.open(claimed.authorizeUrl, contextOf(authorizationId)) }
      try {
        const { authorizeUrl, clientId } = await askOnce(person, authorizationId, decision)
        const sealed = keyring.seal(authorizeUrl, contextOf(authorizationId))
        await keepDecision(db, { authorizationId, clientId, authorizeUrl: sealed, now })
        return { authorizeUrl }
      } catch (error) {
        await releaseDecision(db, authorizationId)
        throw error
      }
    },
    revoke: async (db, { person, clientId, now }) => {
      checkAnswer(await ask(() => client.revokeGrant(person.token, clientId)))
      await forgetDecisions(db, person.userId, clientId)
      await endClientSessions(db, { userId: person.userId, clientId, now })
    },
  }
}

/** The scopes that open a permission of the API. */
function listApiScopes(scopes: readonly string[]): string[] {
  return listScopeNames(scopes.join(' ')).filter((name) => (findScope(name)?.permissions.length ?? 0) > 0)
}

function buildInFlight(): Problem {
  return new Problem('conflict', 'This authorization is being decided. Try again in some seconds.')
}

async function ask(call: () => Promise<SupabaseAnswer>): Promise<SupabaseAnswer> {
  return call().catch((cause: unknown) => {
    throw buildUnavailable(cause)
  })
}

function buildUnavailable(cause: unknown): Problem {
  const detail = 'The identity engine does not answer. Try again in some seconds.'
  return new Problem('dependency_unavailable', detail, { cause, headers: { 'retry-after': '5' } })
}

/** The data of an answer. Throws 404, 409 or 503 for an error. */
function checkAnswer(answer: SupabaseAnswer): Readonly<Record<string, unknown>> {
  if (answer.ok) return answer.data
  if (answer.status >= 500 || answer.status === 429) throw buildUnavailable(answer.code)
  if (answer.status === 400) throw new Problem('conflict', 'This authorization is decided already. Start again.')
  throw notFound('authorization')
}

function readAsked(data: Readonly<Record<string, unknown>>): AskedConsent {
  if (data.redirect_url !== undefined) return { kind: 'covered', authorizeUrl: readUrl(data.redirect_url) }
  const { id, name } = (data.client ?? {}) as { id?: unknown; name?: unknown }
  if (typeof id !== 'string' || typeof data.redirect_uri !== 'string') throw buildUnavailable('NO_CLIENT')
  return {
    kind: 'pending',
    clientId: id,
    // A client without a name has none in the answer.
    clientName: typeof name === 'string' && name !== '' ? name : id,
    redirectUri: data.redirect_uri,
    scopes: typeof data.scope === 'string' ? listScopeNames(data.scope) : [],
  }
}

function readUrl(value: unknown): string {
  if (typeof value !== 'string' || !URL.canParse(value)) throw buildUnavailable('NO_REDIRECT_URL')
  return value
}
