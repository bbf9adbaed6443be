/**
 * Reason for which the server closes a connection. pusher-js 8 reads the code: 4000 to 4099 and 4300 or more are final;
 * after 4100 to 4199 it connects again in a second; after 4200 to 4299 at once and without back-off, so many clients
 * are never closed with those.
 */
export interface CloseReason {
  code: number
  /** At most 123 bytes (RFC 6455 section 5.5). */
  reason: string
}

/** Every close of the server. */
export const CLOSE_REASONS = {
  'unknown-app': { code: 4001, reason: 'No application has this key' },
  'address-quota': { code: 4004, reason: 'Too many connections from this address' },
  'unknown-path': { code: 4005, reason: 'Path not found' },
  'invalid-version': { code: 4006, reason: 'Invalid protocol version' },
  'unsupported-version': { code: 4007, reason: 'Unsupported protocol version: use 7' },
  'missing-version': { code: 4008, reason: 'No protocol version supplied' },
  unauthorized: { code: 4009, reason: 'Connection not authorized within the time limit' },
  'foreign-origin': { code: 4009, reason: 'Connections from this origin are not allowed' },
  terminated: { code: 4009, reason: 'The connections of this user were terminated' },
  'over-capacity': { code: 4100, reason: 'Over capacity' },
  'shutting-down': { code: 4100, reason: 'The server is shutting down' },
  'many-authorizations': { code: 4100, reason: 'Too many channels were authorized: connect again' },
  'no-pong': { code: 4201, reason: 'Pong not received in time' },
  'frame-flood': { code: 4301, reason: 'Too many messages' },
  'binary-frame': { code: 1003, reason: 'Text frames only' },
} as const satisfies Record<string, CloseReason>

export type CloseName = keyof typeof CLOSE_REASONS

/** Reason of a refused or ended subscription: the members of `pusher:subscription_error`, and its text. */
export interface SubscriptionRefusal {
  type: 'AuthError' | 'InvalidChannel' | 'InvalidChannelData' | 'LimitReached'
  /** Like a status of HTTP. */
  status: number
  error: string
}

export const SUBSCRIPTION_REFUSALS = {
  'invalid-name': { type: 'InvalidChannel', status: 400, error: 'The channel name is invalid' },
  'auth-missing': { type: 'AuthError', status: 401, error: 'Auth info required to subscribe' },
  'wrong-key': { type: 'AuthError', status: 401, error: 'Invalid key in subscription auth data' },
  'wrong-signature': { type: 'AuthError', status: 401, error: 'Invalid signature in subscription auth data' },
  'not-signed-in': { type: 'AuthError', status: 401, error: 'The connection is not signed in as this user' },
  'access-ended': { type: 'AuthError', status: 403, error: 'The access to this channel was withdrawn' },
  'invalid-data': { type: 'InvalidChannelData', status: 400, error: 'The channel data names no valid user' },
  'data-too-large': { type: 'LimitReached', status: 413, error: 'The channel data is too large' },
  'too-many-channels': { type: 'LimitReached', status: 429, error: 'The connection has too many channels' },
  'too-many-members': { type: 'LimitReached', status: 429, error: 'The channel has too many members' },
} as const satisfies Record<string, SubscriptionRefusal>

export type RefusalName = keyof typeof SUBSCRIPTION_REFUSALS

/** The code of `pusher:error` after a client event over the limit. */
export const CLIENT_EVENT_RATE_CODE = 4301

/** The code of `pusher:error` after a refused sign-in. */
export const UNAUTHORIZED_CODE = 4009

/** Protocol versions with the frames of version 7. */
const SUPPORTED_VERSIONS = [5, 6, 7]

/** Close reason for this `protocol` parameter; undefined when it is supported. */
export function classifyVersion(protocol: string | null): CloseName | undefined {
  if (protocol === null || protocol === '') return 'missing-version'
  if (!/^\d{1,4}$/.test(protocol)) return 'invalid-version'
  return SUPPORTED_VERSIONS.includes(Number(protocol)) ? undefined : 'unsupported-version'
}
