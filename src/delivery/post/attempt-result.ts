import type { PostErrorClass } from '../../outbound/send/post-result.ts'

/** Failure class of an attempt, never an address: receivers may read it (docs/contract/webhooks.md#callback-guard). */
export type ErrorClass =
  | PostErrorClass
  | 'redirect'
  | 'http_4xx'
  | 'http_5xx'
  | 'http_unexpected'
  /** The receiver has no secret yet (a legacy webhook): nothing can be signed. */
  | 'secret_missing'
  /** The stored secret cannot be decrypted under SECRET_KEY. */
  | 'secret_unreadable'
  /** A pulled delivery was not acknowledged in time. */
  | 'lease_expired'
  /** The subscriber that pulled a delivery gave it back. */
  | 'returned'

/** Every failure class, in the order of the stages of an attempt. */
export const ERROR_CLASSES = Object.keys({
  blocked_address: null,
  dns: null,
  connect: null,
  tls: null,
  timeout: null,
  reset: null,
  protocol: null,
  interrupted: null,
  redirect: null,
  http_4xx: null,
  http_5xx: null,
  http_unexpected: null,
  secret_missing: null,
  secret_unreadable: null,
  lease_expired: null,
  returned: null,
} satisfies Record<ErrorClass, null>) as ErrorClass[]

/** Outcome of an attempt, as needed for the decision. */
export type AttemptResult = { statusCode: number } | { errorClass: ErrorClass } | typeof ACKNOWLEDGED

/** A pulled delivery that its subscriber acknowledged. */
export const ACKNOWLEDGED = { isAcknowledged: true } as const

/** Whether an attempt was made by this service; otherwise its time is that of the subscriber who pulled it. Pure. */
export function isOwnAttempt(result: AttemptResult): boolean {
  if (!('errorClass' in result)) return 'statusCode' in result
  return result.errorClass !== 'lease_expired' && result.errorClass !== 'returned'
}

/** Classifies an attempt: undefined when it delivered, else the class of its failure. Success is any 2xx (docs/contract/delivery.md#statuses). */
export function classifyResult(result: AttemptResult): ErrorClass | undefined {
  if ('errorClass' in result) return result.errorClass
  if ('isAcknowledged' in result) return undefined
  const { statusCode } = result
  if (statusCode >= 200 && statusCode < 300) return undefined
  if (statusCode >= 300 && statusCode < 400) return 'redirect'
  if (statusCode >= 400 && statusCode < 500) return 'http_4xx'
  if (statusCode >= 500 && statusCode < 600) return 'http_5xx'
  return 'http_unexpected'
}
