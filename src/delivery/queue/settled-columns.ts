import type { PostTimings } from '../../outbound/send/post-result.ts'
import type { Claim } from '../policy.ts'

/** What the result of an attempt changes in the row of a queue. */
export interface ResultChange extends Pick<Claim, 'id'> {
  status: string
  /** When a row that waits again is due. */
  nextAttemptAt: Date | null
  statusCode: number | null
  errorClass: string | null
  durationMs: number
  endedAt: Date
}

/** What the result of a POST changes, with its entry of the attempt log (docs/contract/delivery.md#attempt-log). */
export interface AttemptChange extends ResultChange {
  /** The number of the attempt, 1-based. */
  attempt: number
  trigger: string
  /** The id of the worker that made it. */
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
    ids: column((one) => one.id),
    statuses: column((one) => one.status),
    nextAttempts: column((one) => one.nextAttemptAt),
    statusCodes: column((one) => one.statusCode),
    errorClasses: column((one) => one.errorClass),
    durations: column((one) => Math.round(one.durationMs)),
    ends: column((one) => one.endedAt),
  }
}

/** The same with the columns of the attempt log. */
export function listAttemptColumns(changes: readonly AttemptChange[]) {
  const column = <Value>(pick: (change: AttemptChange) => Value): readonly Value[] => changes.map(pick)
  return {
    ...listResultColumns(changes),
    attempts: column((one) => one.attempt),
    triggers: column((one) => one.trigger),
    workers: column((one) => one.worker),
    starts: column((one) => one.startedAt),
    excerpts: column((one) => one.responseExcerpt),
    headers: column((one) => toJson(one.responseHeaders)),
    timings: column((one) => toJson(one.timings)),
  }
}

const toJson = (value: object | null) => (value === null ? null : JSON.stringify(value))
