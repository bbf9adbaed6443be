import type { PostTimings } from '../../outbound/send/post-result.ts'
import type { Claim } from '../policy.ts'

export interface ResultChange extends Pick<Claim, 'id'> {
  status: string
  /** Due time of a row that waits again. */
  nextAttemptAt: Date | null
  statusCode: number | null
  errorClass: string | null
  durationMs: number
  endedAt: Date
}

/** Changes by the result of a POST, with its entry of the attempt log (docs/contract/delivery.md#attempt-log). */
export interface AttemptChange extends ResultChange {
  /** The number of the attempt, 1-based. */
  attempt: number
  trigger: string
  worker: string
  startedAt: Date
  responseExcerpt: string | null
  responseHeaders: Record<string, string> | null
  timings: PostTimings | null
}

/** The parameters of a statement that settles results: an array for each column, in one order. */
export type ResultParams = ReturnType<typeof listResultColumns>

/** The same for attempts that posted. */
export type AttemptParams = ReturnType<typeof listAttemptColumns>

/** Turns results into an array for each column. */
export function listResultColumns(changes: readonly ResultChange[]) {
  const column = <Value>(pick: (change: ResultChange) => Value): readonly Value[] => changes.map(pick)
  return {
    ids: column((row) => row.id),
    statuses: column((row) => row.status),
    nextAttempts: column((row) => row.nextAttemptAt),
    statusCodes: column((row) => row.statusCode),
    errorClasses: column((row) => row.errorClass),
    durations: column((row) => Math.round(row.durationMs)),
    ends: column((row) => row.endedAt),
  }
}

/** The same with the columns of the attempt log. */
export function listAttemptColumns(changes: readonly AttemptChange[]) {
  const column = <Value>(pick: (change: AttemptChange) => Value): readonly Value[] => changes.map(pick)
  return {
    ...listResultColumns(changes),
    attempts: column((row) => row.attempt),
    triggers: column((row) => row.trigger),
    workers: column((row) => row.worker),
    starts: column((row) => row.startedAt),
    excerpts: column((row) => row.responseExcerpt),
    headers: column((row) => toJson(row.responseHeaders)),
    timings: column((row) => toJson(row.timings)),
  }
}

const toJson = (value: object | null) => (value === null ? null : JSON.stringify(value))
