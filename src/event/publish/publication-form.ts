import type { EventId } from '../../base/id.ts'
import type { FieldError, FieldErrorCode } from '../../http/problem/field-error.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import type { PublishBody } from '../occurrence/event.schema.ts'
import type { PathOf, Publication } from './publication-rules.ts'

/** Parses both forms of the body. Throws a 422 for neither or both. */
export function readPublications(body: Static<typeof PublishBody>): { publications: Publication[]; pathOf: PathOf } {
  const { events, ...single } = body
  if (events) {
    const errors = Object.keys(single).map((path) => buildError(path, 'not_with_events', 'is not taken beside events'))
    checkForm(errors)
    return { publications: events.map(toPublication), pathOf: (index, member) => `events.${index}.${member}` }
  }
  const { event, id } = single
  if (event === undefined || id === undefined) {
    const missing = [...(event === undefined ? ['event'] : []), ...(id === undefined ? ['id'] : [])]
    throw buildFormProblem(missing.map((path) => buildError(path, 'required', 'is required, or events in its place')))
  }
  return { publications: [toPublication({ ...single, event, id })], pathOf: (_index, member) => member }
}

function buildError(path: string, code: FieldErrorCode, message: string): FieldError {
  return { path, code, message }
}

function buildFormProblem(errors: FieldError[]): Problem {
  return new Problem('validation_failed', 'Send one event, or events with 1 to 1,000 of them.', { errors })
}

function checkForm(errors: FieldError[]): void {
  if (errors.length > 0) throw buildFormProblem(errors)
}

function toPublication(entry: {
  event: string
  account?: string | null
  id: string
  url?: string | null
  idempotency_key?: string
}): Publication {
  const { event, account = null, id, url = null, idempotency_key: idempotencyKey = null } = entry
  return { event, account, id, url, idempotencyKey }
}

/** The outcome of accepted publications. */
export function buildAccepted(ids: readonly EventId[]) {
  return {
    data: { accepted: ids.length, events: ids.map((id) => ({ event_id: id })) },
    message: ids.length === 1 ? 'Event accepted.' : `${ids.length} events accepted.`,
    audit: { events: ids.length },
  }
}
