import { enumSchema, named, namedObject, nullable, TimestampSchema } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import type { PostTimings } from '../../outbound/send/post-result.ts'
import { ERROR_CLASSES, type ErrorClass } from './attempt-result.ts'

/** One entry of an attempt log: one POST (docs/contract/delivery.md#attempt-log). */
export interface LoggedAttempt {
  attempt: number
  trigger: 'schedule' | 'test' | 'replay'
  worker: string
  startedAt: Date
  durationMs: number
  statusCode: number | null
  errorClass: ErrorClass | null
  responseExcerpt: string | null
  responseHeaders: Record<string, string> | null
  timings: PostTimings | null
}

const Milliseconds = nullable(Type.Number())

const ErrorClassSchema = named(
  'AttemptErrorClass',
  enumSchema(ERROR_CLASSES, {
    description:
      'The stage that failed: our address rules, the look-up, the connection, TLS, the time limit, a connection that ' +
      'broke, an answer that is not HTTP, a stop of the service; the status that was answered; or a secret that is missing or ' +
      'cannot be read.',
  }),
)

/** One entry of the attempt log: one POST. */
export const AttemptRow = namedObject('Attempt', {
  attempt: Type.Integer(),
  trigger: enumSchema(['schedule', 'test', 'replay']),
  worker: Type.String({ description: 'The process that sent it.' }),
  started_at: TimestampSchema,
  duration_ms: Type.Integer(),
  status_code: nullable(Type.Integer()),
  error_class: nullable(ErrorClassSchema),
  response_excerpt: nullable(Type.String({ description: 'The first 1 KiB of the answer.' })),
  response_headers: nullable(Type.Record(Type.String(), Type.String())),
  timings: nullable(
    namedObject('AttemptTimings', {
      dns_ms: Milliseconds,
      connect_ms: Milliseconds,
      tls_ms: Milliseconds,
      first_byte_ms: Milliseconds,
      total_ms: Milliseconds,
    }),
  ),
})

/** Maps an entry of the attempt log for the wire. */
export function toAttemptRow(record: LoggedAttempt): Static<typeof AttemptRow> {
  const { timings } = record
  return {
    attempt: record.attempt,
    trigger: record.trigger,
    worker: record.worker,
    started_at: record.startedAt.toISOString(),
    duration_ms: record.durationMs,
    status_code: record.statusCode,
    error_class: record.errorClass,
    response_excerpt: record.responseExcerpt,
    response_headers: record.responseHeaders,
    timings: timings && {
      dns_ms: timings.dnsMs,
      connect_ms: timings.connectMs,
      tls_ms: timings.tlsMs,
      first_byte_ms: timings.firstByteMs,
      total_ms: timings.totalMs,
    },
  }
}
