import { CARRIED_HEADER, type LoggedEvent, writeCarried } from './carried-event.ts'
import type { LogMessage } from './log.ts'

/** First token of the subjects of events. */
export const SUBJECT_PREFIX = 'ev'

/** The token in place of an account, for events that no account owns. */
const NO_ACCOUNT = 'none'

/**
 * The subject of an event: `ev.<account>.<resource>.<action>` (docs/contract/event-log.md#subjects). Names of event types
 * have lower-case letters, digits and hyphens; any other character is written as its UTF-8 bytes, `%` and two digits, so
 * that no name is a wildcard or ends a token. Pure.
 */
export function buildSubject(event: Pick<LoggedEvent, 'account' | 'type'>): string {
  const tokens = event.type.split('.').map(escapeToken)
  return [SUBJECT_PREFIX, event.account ?? NO_ACCOUNT, ...tokens].join('.')
}

function escapeToken(token: string): string {
  if (token === '') return '%'
  return token.replace(/[^A-Za-z0-9_-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  )
}

/**
 * The message of an event. Its body is the envelope of a first attempt, exactly as a webhook gets it; `traceparent` and
 * `tracestate` are headers (W3C Trace Context). With cells, `seal` adds what other databases take in. Pure.
 */
export function buildEventMessage(
  event: LoggedEvent,
  buildBody: (event: LoggedEvent) => string,
  seal?: (text: string) => string,
): LogMessage {
  const [traceparent, ...tracestate] = event.trace?.split(' ') ?? []
  return {
    subject: buildSubject(event),
    id: event.id,
    recordedAt: event.createdAt,
    headers: {
      ...(traceparent && { traceparent }),
      ...(tracestate.length > 0 && { tracestate: tracestate.join(' ') }),
      ...(event.carried && seal && { [CARRIED_HEADER]: seal(writeCarried({ ...event, carried: event.carried })) }),
    },
    body: buildBody(event),
  }
}
