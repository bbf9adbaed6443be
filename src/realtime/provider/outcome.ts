import type { ProviderErrorClass, ProviderVerdict } from './provider-outcome.ts'

/**
 * The states of a message (docs/contract/realtime.md#states-of-a-message):
 *
 *   pending ---- accepted by the provider ----> published
 *   pending ---- refused (4xx) ---------------> rejected
 *   pending ---- no usable answer ------------> retrying --- the same again, up to the last attempt --> exhausted
 */
export type MessageStatus = 'retrying' | 'published' | 'rejected' | 'exhausted'

/** Failure class of an attempt, or its interruption by the end of the process. */
export type MessageErrorClass = ProviderErrorClass | 'interrupted'

export type MessageResult =
  | ProviderVerdict
  | { kind: 'interrupted' }
  /** Not sent, because an earlier message of the account was not published: the attempt is not counted. */
  | { kind: 'held' }

/** The delays before the 2nd, 3rd, ... attempt; then the last one. A recovery of the provider ends them. */
const RETRY_DELAYS_MS = [1_000, 5_000, 30_000, 120_000, 300_000] as const

/** Maximum number of attempts of one message, over some 55 minutes. Later, clients read the API. */
export const MAX_MESSAGE_ATTEMPTS = 15

export interface MessageDecision {
  status: MessageStatus
  nextAttemptAt: Date | null
  statusCode: number | null
  errorClass: MessageErrorClass | null
}

/** Decides the next state of a message after its attempt number `attempt`. Pure. */
export function decideMessage(input: { result: MessageResult; attempt: number; endedAt: Date }): MessageDecision {
  const { result, attempt, endedAt } = input
  const end = (status: MessageStatus, statusCode: number | null, errorClass: MessageErrorClass | null) =>
    ({ status, nextAttemptAt: null, statusCode, errorClass }) as const
  if (result.kind === 'ok') return end('published', 200, null)
  if (result.kind === 'held') return { ...end('retrying', null, null), nextAttemptAt: endedAt }
  const errorClass = result.kind === 'interrupted' ? 'interrupted' : result.errorClass
  const statusCode = result.kind === 'interrupted' ? null : result.statusCode
  if (result.kind === 'rejected' && !result.isRetryable) return end('rejected', statusCode, errorClass)
  if (attempt >= MAX_MESSAGE_ATTEMPTS) return end('exhausted', statusCode, errorClass)
  const delayMs = result.kind === 'interrupted' ? 0 : (RETRY_DELAYS_MS[attempt - 1] ?? RETRY_DELAYS_MS.at(-1) ?? 0)
  return { ...end('retrying', statusCode, errorClass), nextAttemptAt: new Date(endedAt.getTime() + delayMs) }
}
