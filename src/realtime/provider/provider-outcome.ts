import type { OwnFault } from '../../outbound/own-fault/own-fault.ts'

export type ProviderErrorClass =
  | 'connect'
  | 'dns'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'protocol'
  | 'redirect'
  | 'not_json'
  | 'http_4xx'
  | 'http_5xx'

/**
 * Outcome of a request to the provider's HTTP API:
 * - `ok`: status 200 with a JSON object;
 * - `rejected`: a 4xx, which does not affect the verdict on the provider (docs/contract/realtime.md#health-probe);
 *   `isRetryable` for 408, 425 and 429;
 * - `own_fault`: this process could not send the request. It does not affect the verdict
 *   (docs/contract/delivery.md#whose-fault);
 * - `failed`: anything else.
 */
export type ProviderOutcome =
  | { kind: 'ok'; body: Record<string, unknown> }
  | { kind: 'rejected'; statusCode: number; errorClass: 'http_4xx'; isRetryable: boolean }
  | { kind: 'own_fault'; fault: OwnFault }
  | { kind: 'failed'; statusCode: number | null; errorClass: ProviderErrorClass }

/** Verdict of an outcome on the provider. */
export type ProviderVerdict = Exclude<ProviderOutcome, { kind: 'own_fault' }>

const RETRYABLE_REFUSALS = [408, 425, 429]

/** Classifies an answer. Any 2xx except a 200 with a JSON object is from another server. Pure. */
export function classifyAnswer(statusCode: number, text: string): ProviderVerdict {
  if (statusCode >= 300 && statusCode < 400) return { kind: 'failed', statusCode, errorClass: 'redirect' }
  if (statusCode >= 400 && statusCode < 500)
    return {
      kind: 'rejected',
      statusCode,
      errorClass: 'http_4xx',
      isRetryable: RETRYABLE_REFUSALS.includes(statusCode),
    }
  if (statusCode >= 500) return { kind: 'failed', statusCode, errorClass: 'http_5xx' }
  const body = statusCode === 200 ? parseObject(text) : undefined
  return body ? { kind: 'ok', body } : { kind: 'failed', statusCode, errorClass: 'not_json' }
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

const DIAL_CODES: Record<string, ProviderErrorClass> = {
  ECONNREFUSED: 'connect',
  EHOSTUNREACH: 'connect',
  ENETUNREACH: 'connect',
  ETIMEDOUT: 'connect',
  UND_ERR_CONNECT_TIMEOUT: 'connect',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'reset',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  UND_ERR_ABORTED: 'timeout',
}

/** The class of the error that ended a request. Pure. */
export function classifyRequestError(error: unknown): ProviderErrorClass {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  if (name === 'TimeoutError' || name === 'AbortError') return 'timeout'
  if (typeof code !== 'string') return 'protocol'
  if (DIAL_CODES[code]) return DIAL_CODES[code]
  return /CERT|TLS|SSL|SELF_SIGNED|ISSUER|SIGNATURE/.test(code) ? 'tls' : 'protocol'
}
