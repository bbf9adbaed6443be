import { createHash } from 'node:crypto'
import { type EventTypeRecord, findEventTypesByName } from '../catalogue/catalogue.store.ts'
import type { Caller } from '../http/caller.ts'
import { ERRORS_LIMIT, type FieldError, Problem } from '../http/problem.ts'
import type { AccountId, EventId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { type EventDeps, type EventDraft, recordEvents } from './event.ts'
import { listPublishKeys, type PublishKey, takePublishKeys } from './publish.store.ts'

/** How long an idempotency key of a publisher is remembered. */
export const PUBLISH_KEY_KEPT_MS = 24 * 3_600_000

/** One event that another service says has happened (docs/contract/events.md#publishing-from-outside). */
export interface Publication {
  /** The event type. */
  event: string
  /** The owner; null reaches global webhooks only. */
  account: string | null
  /** The outside service's own id of the resource. */
  id: string
  idempotencyKey: string | null
}

/** What publishing uses. */
export interface PublishDeps extends EventDeps {
  /** Which of these ids are existing accounts. */
  findExistingAccounts: (db: Database, ids: readonly string[]) => Promise<Set<string>>
}

/** What publications are judged by: read once for the whole batch. */
export interface PublishContext {
  eventTypes: ReadonlyMap<string, EventTypeRecord>
  accounts: ReadonlySet<string>
}

/** Names the member of a publication in a problem: `event`, or `events.3.event` in a batch. */
export type PathOf = (index: number, member: string) => string

/**
 * Records events of other services in the transaction `db` (docs/contract/events.md#publishing-from-outside): all of them or, when one breaks a rule, none, with every
 * broken one named in the 422. Returns the id of each in order; the id of the earlier event where a key was used before.
 * Throws 409 `conflict` while the event queue is off.
 */
export async function publishEvents(
  deps: PublishDeps,
  db: Database,
  input: {
    publications: readonly Publication[]
    pathOf: PathOf
    caller: Caller
    now: Date
    /** Of the request; its events' deliveries go on in it. */
    trace: string | null
  },
): Promise<EventId[]> {
  const { publications, pathOf, now } = input
  const context = await readContext(deps, db, publications)
  checkErrors(findPublicationErrors(publications, context, pathOf))
  if (!deps.enableApiEventQueue)
    throw new Problem(
      'conflict',
      'ENABLE_API_EVENT_QUEUE is false, so no event is recorded or sent. Set it to true first.',
    )
  const ids = assignIds(deps, publications)
  const taken = await takeKeys(db, { ...input, ids })
  const drafts = new Map<EventId, EventDraft>()
  publications.forEach((publication, index) => {
    const id = ids[index] as EventId
    const isNew = publication.idempotencyKey === null || taken.isNew(publication.idempotencyKey)
    if (isNew && !drafts.has(id)) drafts.set(id, { ...buildDraft(publication, context, id), trace: input.trace })
  })
  await recordEvents(deps, db, [...drafts.values()], now)
  return publications.map(({ idempotencyKey }, index) => taken.eventOf(idempotencyKey) ?? (ids[index] as EventId))
}

async function readContext(
  deps: PublishDeps,
  db: Database,
  publications: readonly Publication[],
): Promise<PublishContext> {
  const eventTypes = await findEventTypesByName(db, [...new Set(publications.map((one) => one.event))])
  const accounts = [...new Set(publications.flatMap((one) => one.account ?? []))]
  return {
    eventTypes: new Map(eventTypes.map((one) => [one.internal, one])),
    accounts: await deps.findExistingAccounts(db, accounts),
  }
}

function checkErrors(errors: readonly FieldError[]): void {
  const [first] = errors
  if (!first) return
  const listed = errors.length > ERRORS_LIMIT ? `errors lists the first ${ERRORS_LIMIT}` : 'errors lists them'
  const more = errors.length > 1 ? ` ${errors.length} rules are broken; ${listed}.` : ''
  throw new Problem('validation_failed', `${first.path}: ${first.message}. Nothing was recorded.${more}`, {
    errors: [...errors],
  })
}

/** The broken rules of a batch, every one. Pure. */
export function findPublicationErrors(
  publications: readonly Publication[],
  context: PublishContext,
  pathOf: PathOf,
): FieldError[] {
  const firstOfKey = new Map<string, Publication>()
  return publications.flatMap((publication, index) => {
    const errors = [findTypeError(publication, context), findAccountError(publication, context)].filter(
      (one) => one !== undefined,
    )
    const { idempotencyKey: key } = publication
    const first = key === null ? undefined : firstOfKey.get(key)
    if (key !== null && !first) firstOfKey.set(key, publication)
    if (first && !hashContent(first).equals(hashContent(publication))) errors.push(KEY_REUSED)
    return errors.map((error) => ({ ...error, path: pathOf(index, error.path) }))
  })
}

const KEY_REUSED: FieldError = {
  path: 'idempotency_key',
  code: 'idempotency_key_reused',
  message: 'was used for another event within 24 hours; make a new key for a new event',
}

function findTypeError({ event }: Publication, { eventTypes }: PublishContext): FieldError | undefined {
  const eventType = eventTypes.get(event)
  const broken = (code: string, message: string) => ({ path: 'event', code, message })
  if (!eventType)
    return broken('unknown_event', `${event} is no event type; register it with POST /api/v3/webhook/event first`)
  // What this service says of its own resources is never forged from outside.
  if (eventType.source !== 'external')
    return broken(
      'own_event',
      `${event} is an event of this service itself; only external event types can be published`,
    )
  if (!eventType.isActived) return broken('inactive_event', `${event} is inactive; activate the event type first`)
  return undefined
}

function findAccountError({ event, account }: Publication, context: PublishContext): FieldError | undefined {
  const eventType = context.eventTypes.get(event)
  if (account === null || !eventType) return undefined
  const broken = (code: string, message: string) => ({ path: 'account', code, message })
  if (eventType.accountScope === 'none')
    return broken('account_not_taken', `${event} has no owner (account_scope none); leave the account out or send null`)
  // A purge reaches global webhooks only and carries no account, and its account may be what was purged.
  if (isPurge(event) || context.accounts.has(account)) return undefined
  return broken('unknown_account', 'is no existing account; null reaches global webhooks only')
}

function isPurge(event: string): boolean {
  return event.endsWith('.purge')
}

function hashContent({ event, account, id }: Publication): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([event, account, id]))
    .digest()
}

/** One id for each publication; those with the same key share one. */
function assignIds(deps: Pick<EventDeps, 'ids'>, publications: readonly Publication[]): EventId[] {
  const ofKey = new Map<string, EventId>()
  return publications.map(({ idempotencyKey: key }) => {
    const id = (key === null ? undefined : ofKey.get(key)) ?? deps.ids.next<'event'>()
    if (key !== null) ofKey.set(key, id)
    return id
  })
}

/** Takes the keys of a batch; those used before say which event they stand for. Throws a 422 for another content. */
async function takeKeys(
  db: Database,
  input: { publications: readonly Publication[]; ids: readonly EventId[]; pathOf: PathOf; caller: Caller; now: Date },
) {
  const { publications, ids, pathOf, now } = input
  const caller = describePublisher(input.caller)
  const wanted = new Map<string, PublishKey & { index: number }>()
  publications.forEach((publication, index) => {
    const key = publication.idempotencyKey
    if (key !== null && !wanted.has(key))
      wanted.set(key, { key, contentHash: hashContent(publication), eventId: ids[index] as EventId, index })
  })
  const expiredAt = new Date(now.getTime() - PUBLISH_KEY_KEPT_MS)
  const taken = await takePublishKeys(db, { caller, keys: [...wanted.values()], expiredAt, now })
  const used = await listPublishKeys(
    db,
    caller,
    [...wanted.keys()].filter((key) => !taken.has(key)),
  )
  const reused = used.flatMap((earlier) => {
    const asked = wanted.get(earlier.key)
    return asked && !asked.contentHash.equals(earlier.contentHash) ? [asked.index] : []
  })
  checkErrors(reused.sort((a, b) => a - b).map((index) => ({ ...KEY_REUSED, path: pathOf(index, KEY_REUSED.path) })))
  const earlier = new Map(used.map((one) => [one.key, one.eventId]))
  return {
    isNew: (key: string) => taken.has(key),
    eventOf: (key: string | null) => (key === null ? undefined : earlier.get(key)),
  }
}

/** A person keeps their keys over sign-ins; an API key has its own, since each is another program. */
function describePublisher(caller: Caller): string {
  return caller.apiKeyId ? `api-key:${caller.apiKeyId}` : `user:${caller.userId}`
}

function buildDraft(publication: Publication, { eventTypes }: PublishContext, id: EventId): EventDraft {
  const [resource = '', action = ''] = publication.event.split('.')
  return {
    id,
    type: publication.event,
    accountScope: eventTypes.get(publication.event)?.accountScope ?? 'none',
    account: publication.account as AccountId | null,
    resource,
    action,
    resourceId: publication.id,
    // Where the outside service is read is not known here.
    url: null,
  }
}
