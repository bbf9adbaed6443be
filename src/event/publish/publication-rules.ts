import { createHash } from 'node:crypto'
import type { FieldError, FieldErrorCode } from '../../http/problem/field-error.ts'
import { ERRORS_LIMIT, Problem } from '../../http/problem/problem.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import { findResourceUrlError } from '../occurrence/resource-url.ts'
import type { PublishContext, PublishedType } from './publish.store.ts'

/** One event of another service (docs/contract/events.md#publishing-from-outside). */
export interface Publication {
  event: string
  /** The owner; null reaches global webhooks only. */
  account: string | null
  /** The other service's id of the resource. */
  id: string
  /** URL of the resource at the other service. */
  url: string | null
  idempotencyKey: string | null
}

/** Names the member of a publication in a problem: `event`, or `events.3.event` in a batch. */
export type PathOf = (index: number, member: string) => string

/** The 422 that names broken rules; undefined without any. */
export function buildPublicationProblem(errors: readonly FieldError[]): Problem | undefined {
  const [first] = errors
  if (!first) return undefined
  const listed = errors.length > ERRORS_LIMIT ? `errors lists the first ${ERRORS_LIMIT}` : 'errors lists them'
  const more = errors.length > 1 ? ` ${errors.length} rules are broken; ${listed}.` : ''
  return new Problem('validation_failed', `${first.path}: ${first.message}. Nothing was recorded.${more}`, {
    errors: [...errors],
  })
}

/** All broken rules of a batch. Pure. */
export function findPublicationErrors(
  publications: readonly Publication[],
  context: PublishContext & { scope: PermissionScope },
  pathOf: PathOf,
): FieldError[] {
  const firstOfKey = new Map<string, Publication>()
  return publications.flatMap((publication, index) => {
    const errors = [
      findTypeError(publication, context),
      findAccountError(publication, context),
      findResourceUrlError(publication.url),
    ].filter((item) => item !== undefined)
    const { idempotencyKey: key } = publication
    const first = key === null ? undefined : firstOfKey.get(key)
    if (key !== null && !first) firstOfKey.set(key, publication)
    if (first && !hashPublication(first).equals(hashPublication(publication))) errors.push(KEY_REUSED)
    return errors.map((error) => ({ ...error, path: pathOf(index, error.path) }))
  })
}

/** The broken rule of a key used for another event. */
export const KEY_REUSED: FieldError = {
  path: 'idempotency_key',
  code: 'idempotency_key_reused',
  message: 'was used for another event within 24 hours; make a new key for a new event',
}

function findTypeError(
  { event }: Publication,
  { eventTypes, scope }: PublishContext & { scope: PermissionScope },
): FieldError | undefined {
  const eventType = eventTypes.get(event)
  const broken = (code: FieldErrorCode, message: string) => ({ path: 'event', code, message })
  if (isHidden(eventType, scope))
    return broken('unknown_event', `${event} is not an event type that you see; GET /api/v3/webhook/event lists them`)
  if (!eventType)
    return broken('unknown_event', `${event} is not an event type; register it with POST /api/v3/webhook/event first`)
  // Events of the service's own resources cannot be published from outside.
  if (eventType.source !== 'external')
    return broken(
      'own_event',
      `${event} is an event of this service itself; only external event types can be published`,
    )
  if (!eventType.isActived) return broken('inactive_event', `${event} is inactive; activate the event type first`)
  return undefined
}

/** Whether an event type is hidden from the publisher: a tenant sees those with account scope and the mark. */
function isHidden(eventType: PublishedType | undefined, scope: PermissionScope): boolean {
  return scope !== 'all' && !(eventType?.isTenantVisible && eventType.accountScope === 'account')
}

function findAccountError(
  { event, account }: Publication,
  context: PublishContext & { scope: PermissionScope },
): FieldError | undefined {
  const eventType = context.eventTypes.get(event)
  if (account === null || !eventType || isHidden(eventType, context.scope)) return undefined
  const broken = (code: FieldErrorCode, message: string) => ({ path: 'account', code, message })
  if (eventType.accountScope === 'none')
    return broken('account_not_taken', `${event} has no owner (account_scope none); leave the account out or send null`)
  // A purge reaches global webhooks only and has no account; the account itself may be purged.
  if (isPurge(event) || context.accounts.has(account)) return undefined
  return broken('unknown_account', 'is not an existing account; null reaches global webhooks only')
}

/** Whether an event is a permanent removal: it has no account. */
export function isPurge(event: string): boolean {
  return event.endsWith('.purge')
}

/** The hash of the content under a key. Without a URL it equals the hash of releases without URLs. */
export function hashPublication({ event, account, id, url }: Publication): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([event, account, id, ...(url === null ? [] : [url])]))
    .digest()
}
