import { ClientError, ResponseBodyError } from 'openid-client'
import { GuardedFetchError } from '../../../outbound/guarded-fetch.ts'
import type { EngineRefusal } from '../engine.ts'

/** A refusal with the rule that broke. */
export interface Fault {
  reason: EngineRefusal
  detail: string
}

/** Errors for a user who declined (RFC 6749 section 4.1.2.1; LinkedIn and Apple have their own). */
const DENIALS = ['access_denied', 'user_cancelled_login', 'user_cancelled_authorize', 'user_denied', 'consent_required']

/** Codes of `openid-client` for an answer outside the protocol. */
const PROTOCOL_CODES = ['OAUTH_RESPONSE_IS_NOT_JSON', 'OAUTH_RESPONSE_IS_NOT_CONFORM', 'OAUTH_TIMEOUT', 'OAUTH_ABORT']

/** Classifies the fault of a sign-in. `stage` is the failed step. Pure. */
export function classifyFault(error: unknown, stage: 'openid token' | 'oauth token' | 'profile'): Fault {
  const fetchError = findFetchError(error)
  if (fetchError) return { reason: fetchError.ownFault ? 'own_fault' : 'provider_fault', detail: fetchError.code }
  if (error instanceof ResponseBodyError)
    return { reason: stage === 'profile' ? 'provider_fault' : 'code_refused', detail: clean(error.error) }
  const code = error instanceof ClientError ? (error.code ?? 'UNKNOWN') : 'UNKNOWN'
  if (PROTOCOL_CODES.includes(code)) return { reason: 'provider_fault', detail: code }
  if (stage === 'profile') return { reason: 'profile_invalid', detail: code }
  // GitHub answers 200 with an error, so the access token is missing.
  return { reason: stage === 'openid token' ? 'id_token_invalid' : 'code_refused', detail: code }
}

/** Classifies the `error` parameter of a callback. */
export function classifyErrorParameter(error: string): Fault {
  return { reason: DENIALS.includes(error) ? 'denied' : 'provider_fault', detail: clean(error) }
}

function findFetchError(error: unknown): GuardedFetchError | undefined {
  for (let at = error, depth = 0; at !== undefined && at !== null && depth < 5; depth += 1) {
    if (at instanceof GuardedFetchError) return at
    at = (at as { cause?: unknown }).cause
  }
  return undefined
}

/** An error word of a provider, safe for the log. */
function clean(word: unknown): string {
  return typeof word === 'string' ? word.replace(/[^\w.-]/g, '_').slice(0, 64) : 'unknown'
}
