import { createHash } from 'node:crypto'
import { CodedError } from '../../base/coded-error.ts'

export interface LogMessage {
  /** Subject for consumers: `ev.<account>.<type>`. */
  subject: string
  /** The id of the event. The log does not deduplicate by it; consumers do. */
  id: string
  recordedAt: Date
  /** Further headers: the trace of the request that caused the event. */
  headers: Readonly<Record<string, string>>
  /** The envelope, as JSON. */
  body: string
}

/** A place in the log: the last message before it. */
export interface LogPosition {
  /**
   * Differs between a log and the one that replaces it: a position in a log that is gone would otherwise be ahead of the
   * new one, whose reader gets nothing and no error.
   */
  incarnation: string
  /** The number of the message, from 1; 0 before the first one. */
  sequence: number
}

export interface LogEntry extends LogMessage {
  sequence: number
  storedAt: Date
}

/** State of the log. `sequence` is that of its last message, removed or not. */
export interface LogState extends LogPosition {
  firstSequence: number
  messages: number
  bytes: number
}

/** Range of a read: entries from a position or a time on, of all subjects or of those that match `subject`. */
export interface LogQuery {
  from: LogPosition | Date
  /** `fingerprintOf` the message at the position `from`: the same answer compares it. For all subjects alone. */
  fingerprint?: string | undefined
  subject?: string
  limit: number
}

/**
 * The log: messages in one order, kept for a time. The appender knows by the position which messages the log
 * confirmed; a reader deduplicates by keys of its own.
 */
export interface EventLog {
  /** Throws a `LogError`. */
  readState(): Promise<LogState>
  /**
   * Appends messages behind the position, all or none, and returns the position of the last one when the log has made
   * them durable. Throws a `LogError`: `conflict` when the log does not end at `after`; with `unreachable` they may be
   * stored all the same.
   */
  append(messages: readonly LogMessage[], after: LogPosition): Promise<LogPosition>
  /**
   * The entries after a position, oldest first and without a gap, at most `limit`. A server that is behind the others
   * answers with the first ones only; none are at the end of the log, as far as the server knows that says so. Throws a
   * `LogError`: `replaced`, `ahead` or `expired` for a position that the log cannot continue from, or that has another
   * message than the one of `fingerprint`.
   */
  read(query: LogQuery): Promise<LogEntry[]>
  /** The entry with this number, as the leader has it; undefined when it has none: removed, lost or never stored. */
  readAt(sequence: number): Promise<LogEntry | undefined>
  /** The last stored entry; undefined for an empty log. Throws a `LogError`. */
  readLast(): Promise<LogEntry | undefined>
  /** Number of times that its connection was made again: what is known of the log is then compared with it. */
  countReconnects(): number
  isConnected(): boolean
  close(): Promise<void>
}

/** Difference between the clock of the log and those of processes, which name instants that it is read from, in ms. */
export const LOG_SKEW_MS = 300_000

/** Maximum number of messages of one `append`. */
export const APPEND_LIMIT = 1_000

/** Codes of a failed use of the log (docs/operations/event-log.md#codes). */
export type LogErrorCode =
  /** No answer, or no leader. */
  | 'unreachable'
  /** The server refuses the user, or denies it JetStream or the stream. */
  | 'refused'
  /** The stream or the server lacks what the log needs. */
  | 'unsuitable'
  /** Another writer appended, or confirmed messages are gone. */
  | 'conflict'
  /** The position belongs to another log, or to an end that this one lost and has written anew. */
  | 'replaced'
  /** The position is behind the last message of the log: confirmed messages are gone. */
  | 'ahead'
  /** Messages after the position were removed by age or size. */
  | 'expired'

/** A failure of the log. The message has no secret. */
export class LogError extends CodedError<LogErrorCode> {}

/** Checks that a log can be read from a position. Throws a `LogError`. Pure. */
export function checkPosition(position: LogPosition, state: LogState): void {
  if (position.incarnation !== state.incarnation)
    throw new LogError('replaced', 'The log was replaced: the position belongs to another one. Read it from a time.')
  if (position.sequence > state.sequence)
    throw new LogError('ahead', `The log ends at ${state.sequence}, before the position ${position.sequence}.`)
  if (position.sequence + 1 < state.firstSequence)
    throw new LogError('expired', `The log begins at ${state.firstSequence}, after the position ${position.sequence}.`)
}

/** Identity of a stored message, in 43 characters: a hash of its id and the time at which it was stored. Pure. */
export function fingerprintOf({ id, storedAt }: Pick<LogEntry, 'id' | 'storedAt'>): string {
  return createHash('sha256').update(`${storedAt.toISOString()} ${id}`).digest('base64url')
}

/**
 * Checks that `found`, the first entry of the log from a position on, is the message that was there before. Others may have
 * appended in place of an end that was lost, which the end of the log does not tell. Throws a `LogError`: `replaced` for
 * another message, `ahead` for none, which a leader that has not read its whole log has too. Pure.
 */
export function checkFingerprint(
  found: Pick<LogEntry, 'id' | 'storedAt' | 'sequence'> | undefined,
  { sequence, fingerprint }: { sequence: number; fingerprint: string },
  state: Pick<LogState, 'firstSequence'>,
): void {
  // Removed by age or size: there is nothing to compare.
  if (sequence < state.firstSequence) return
  if (found?.sequence !== sequence)
    throw new LogError('ahead', `The log has no message at the position ${sequence} any more.`)
  if (fingerprintOf(found) !== fingerprint)
    throw new LogError('replaced', `The log lost its end, and has another message at the position ${sequence}.`)
}

/** The entries behind the position of a query, of those that begin at it. Throws as `checkFingerprint`. Pure. */
export function checkOverlap(
  entries: readonly LogEntry[],
  from: { sequence: number; fingerprint: string },
  state: Pick<LogState, 'firstSequence'>,
): LogEntry[] {
  // A server that is behind the others has not even the first one yet.
  if (entries.length > 0) checkFingerprint(entries[0], from, state)
  return entries.filter(({ sequence }) => sequence > from.sequence)
}
