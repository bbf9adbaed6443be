/** A message of the log: one event. */
export interface LogMessage {
  /** Subject for consumers: `ev.<account>.<type>`. */
  subject: string
  /** The id of the event. The log does not deduplicate by it; consumers do. */
  id: string
  /** Time at which the event was recorded. */
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

/** A stored message. */
export interface LogEntry extends LogMessage {
  sequence: number
  storedAt: Date
}

/** State of the log. `sequence` is that of its last message, removed or not. */
export interface LogState extends LogPosition {
  /** Number of the oldest stored message. */
  firstSequence: number
  messages: number
  bytes: number
}

/** Range of a read: entries from a position or a time on, of all subjects or of those that match `subject`. */
export interface LogQuery {
  from: LogPosition | Date
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
   * The entries after a position, oldest first; fewer than `limit` at the end of the log. Throws a `LogError`:
   * `replaced`, `ahead` or `expired` for a position that the log cannot continue from.
   */
  read(query: LogQuery): Promise<LogEntry[]>
  /** The last stored entry; undefined for an empty log. Throws a `LogError`. */
  readLast(): Promise<LogEntry | undefined>
  /** Whether this process considers it reachable. */
  isConnected(): boolean
  close(): Promise<void>
}

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
  /** The position belongs to another log. */
  | 'replaced'
  /** The position is behind the last message of the log: confirmed messages are gone. */
  | 'ahead'
  /** Messages after the position were removed by age or size. */
  | 'expired'

/** A failure of the log. The message has no secret. */
export class LogError extends Error {
  readonly code: LogErrorCode

  constructor(code: LogErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'LogError'
    this.code = code
  }
}

/** Checks that a log can be read from a position. Throws a `LogError`. Pure. */
export function checkPosition(position: LogPosition, state: LogState): void {
  if (position.incarnation !== state.incarnation)
    throw new LogError('replaced', 'The log was replaced: the position belongs to another one. Read it from a time.')
  if (position.sequence > state.sequence)
    throw new LogError('ahead', `The log ends at ${state.sequence}, before the position ${position.sequence}.`)
  if (position.sequence + 1 < state.firstSequence)
    throw new LogError('expired', `The log begins at ${state.firstSequence}, after the position ${position.sequence}.`)
}
