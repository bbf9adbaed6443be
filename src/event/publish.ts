import { createHash } from 'node:crypto'
import type { AccountLimiter } from '../account/account-limit.ts'
import type { Caller, PermissionScope } from '../http/caller.ts'
import { ERRORS_LIMIT, type FieldError, Problem } from '../http/problem.ts'
import type { AccountId, EventId } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { buildEvents, type EventDeps, type EventDraft, type EventRecord } from './event.ts'
import {
  listPublishKeys,
  type PublishContext,
  type PublishedType,
  type PublishKey,
  readPublishContext,
  recordPublications,
} from './publish.store.ts'
import { findResourceUrlError } from './resource-url.ts'

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
  /** Where the outside service serves the resource. */
  url: string | null
  idempotencyKey: string | null
}

/** Names the member of a publication in a problem: `event`, or `events.3.event` in a batch. */
export type PathOf = (index: number, member: string) => string

/** An event type with an account that it is published for. */
export interface PublishedPair {
  event: string
  account: string | null
  /** Whether the publisher may use only event types that callers with an account role see. */
  isOfTenant: boolean
}

/** Publications as they are asked for. */
export interface PublishInput {
  /** The accounts that the publisher reaches; `checkPublishScope` has judged it. */
  scope: PermissionScope
  publications: readonly Publication[]
  pathOf: PathOf
  caller: Caller
  now: Date
  /** Of the request; the deliveries of its events belong to it. */
  trace: string | null
}

/** What publishing needs. */
export interface PublishDeps extends EventDeps {
  accountLimits: Pick<AccountLimiter, 'take'>
  /**
   * Records events together with the audit entries of their request; false when a rule of `findPublicationErrors` is
   * broken, and nothing is kept. Shares its statement with other requests.
   */
  recordPublications: (publications: {
    events: readonly EventRecord[]
    pairs: readonly PublishedPair[]
    auditEntries: readonly unknown[]
  }) => Promise<boolean>
}

/** Publications without keys, ready to be recorded. */
export interface UnkeyedPublications {
  ids: EventId[]
  record: (auditEntries: readonly unknown[]) => Promise<boolean>
  /** The 422 that names every broken rule, or a 409 when the request has become valid meanwhile. */
  explain: (db: Database) => Promise<Problem>
}

/**
 * Makes the events of publications without keys; undefined where one has a key or a URL that breaks a rule, or while the
 * event queue is off: those need `publishEvents`.
 */
export function planPublications(
  deps: PublishDeps,
  { publications, pathOf, scope, now, trace }: Omit<PublishInput, 'caller'>,
): UnkeyedPublications | undefined {
  const isPlain = (one: Publication) => one.idempotencyKey === null && !findResourceUrlError(one.url)
  if (!deps.enableApiEventQueue || !publications.every(isPlain)) return undefined
  const ids = publications.map(() => deps.ids.next<'event'>())
  const events = buildEvents(deps, listDrafts(publications, ids, trace), now)
  const isOfTenant = scope !== 'all'
  const pairs = [
    ...new Map(publications.map((one) => [`${one.event} ${one.account}`, { ...one, isOfTenant }])).values(),
  ]
  return {
    ids,
    record: (auditEntries) => deps.recordPublications({ events, pairs, auditEntries }),
    explain: async (db) => {
      const context = await readPublishContext(db, listAsked(publications))
      const meanwhile = 'What the request was refused for changed meanwhile. Send the same request again.'
      return (
        buildPublicationProblem(findPublicationErrors(publications, { ...context, scope }, pathOf)) ??
        new Problem('conflict', meanwhile)
      )
    },
  }
}

/**
 * Records events of other services in the transaction `db`
 * (docs/contract/events.md#publishing-from-outside): all of them or, when one breaks a rule, none, with every broken one
 * named in the 422. Returns the id of each in order; the id of the earlier event where a key was used before.
 * Throws 409 `conflict` while the event queue is off.
 */
export async function publishEvents(deps: EventDeps, db: Database, input: PublishInput): Promise<EventId[]> {
  const { publications, pathOf, now } = input
  const caller = describePublisher(input.caller)
  const ids = assignIds(deps, publications)
  const keys = listKeys(publications, ids)
  const expiredAt = new Date(now.getTime() - PUBLISH_KEY_KEPT_MS)
  const isOn = deps.enableApiEventQueue
  const events = buildEvents(deps, listDrafts(publications, ids, input.trace), now)
  const written = { caller, keys: isOn ? keys : [], events, asked: listAsked(publications), expiredAt, now }
  const { taken, ...context } = await recordPublications(db, written)
  checkErrors(findPublicationErrors(publications, { ...context, scope: input.scope }, pathOf))
  if (!isOn)
    throw new Problem(
      'conflict',
      'ENABLE_API_EVENT_QUEUE is false, so no event is recorded or sent. Set it to true first.',
    )
  const used = await listUsed(db, { caller, keys: keys.filter((key) => !taken.has(key.eventId)), pathOf })
  return publications.map(({ idempotencyKey }, index) => used.get(idempotencyKey) ?? (ids[index] as EventId))
}

/** The event types and accounts that the rules look at. */
function listAsked(publications: readonly Publication[]): { names: string[]; accounts: string[] } {
  return {
    names: [...new Set(publications.map((one) => one.event))],
    accounts: [...new Set(publications.flatMap((one) => one.account ?? []))],
  }
}

/** One event for each id: publications with the same key are one. */
function listDrafts(publications: readonly Publication[], ids: readonly EventId[], trace: string | null): EventDraft[] {
  const drafts = new Map<EventId, EventDraft>()
  publications.forEach((publication, index) => {
    const id = ids[index] as EventId
    if (!drafts.has(id)) drafts.set(id, { ...buildDraft(publication, id), trace })
  })
  return [...drafts.values()]
}

function checkErrors(errors: readonly FieldError[]): void {
  const problem = buildPublicationProblem(errors)
  if (problem) throw problem
}

function buildPublicationProblem(errors: readonly FieldError[]): Problem | undefined {
  const [first] = errors
  if (!first) return undefined
  const listed = errors.length > ERRORS_LIMIT ? `errors lists the first ${ERRORS_LIMIT}` : 'errors lists them'
  const more = errors.length > 1 ? ` ${errors.length} rules are broken; ${listed}.` : ''
  return new Problem('validation_failed', `${first.path}: ${first.message}. Nothing was recorded.${more}`, {
    errors: [...errors],
  })
}

/** The broken rules of a batch, every one. Pure. */
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
    ].filter((one) => one !== undefined)
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

function findTypeError(
  { event }: Publication,
  { eventTypes, scope }: PublishContext & { scope: PermissionScope },
): FieldError | undefined {
  const eventType = eventTypes.get(event)
  const broken = (code: string, message: string) => ({ path: 'event', code, message })
  if (isHidden(eventType, scope))
    return broken('unknown_event', `${event} is no event type that you see; GET /api/v3/webhook/event lists them`)
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

/** Whether an event type does not exist for the publisher: a tenant sees those with account scope and the mark. */
function isHidden(eventType: PublishedType | undefined, scope: PermissionScope): boolean {
  return scope !== 'all' && !(eventType?.isTenantVisible && eventType.accountScope === 'account')
}

function findAccountError(
  { event, account }: Publication,
  context: PublishContext & { scope: PermissionScope },
): FieldError | undefined {
  const eventType = context.eventTypes.get(event)
  if (account === null || !eventType || isHidden(eventType, context.scope)) return undefined
  const broken = (code: string, message: string) => ({ path: 'account', code, message })
  if (eventType.accountScope === 'none')
    return broken('account_not_taken', `${event} has no owner (account_scope none); leave the account out or send null`)
  // A purge reaches global webhooks only and carries no account, and its account may be what was purged.
  if (isPurge(event) || context.accounts.has(account)) return undefined
  return broken('unknown_account', 'is no existing account; null reaches global webhooks only')
}

/** Whether an event says that something was removed for good: it carries no account. */
export function isPurge(event: string): boolean {
  return event.endsWith('.purge')
}

/** Of what a key was used for. Without a URL it is the hash of the releases that took none. */
function hashContent({ event, account, id, url }: Publication): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([event, account, id, ...(url === null ? [] : [url])]))
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

/** A key of a batch, and which publication brought it first. */
type AskedKey = PublishKey & { index: number }

function listKeys(publications: readonly Publication[], ids: readonly EventId[]): AskedKey[] {
  const keys = new Map<string, AskedKey>()
  publications.forEach((publication, index) => {
    const key = publication.idempotencyKey
    if (key !== null && !keys.has(key))
      keys.set(key, { key, contentHash: hashContent(publication), eventId: ids[index] as EventId, index })
  })
  return [...keys.values()]
}

/** The events that keys used before stand for, by key. Throws a 422 for another content. */
async function listUsed(
  db: Database,
  { caller, keys, pathOf }: { caller: string; keys: readonly AskedKey[]; pathOf: PathOf },
): Promise<Map<string | null, EventId>> {
  const asked = new Map(keys.map((key) => [key.key, key]))
  const used = await listPublishKeys(db, caller, [...asked.keys()])
  const reused = used.flatMap((earlier) => {
    const key = asked.get(earlier.key)
    return key && !key.contentHash.equals(earlier.contentHash) ? [key.index] : []
  })
  checkErrors(reused.sort((a, b) => a - b).map((index) => ({ ...KEY_REUSED, path: pathOf(index, KEY_REUSED.path) })))
  return new Map(used.map((one) => [one.key, one.eventId]))
}

/** A person keeps their keys over sign-ins; an API key has its own, since each is another program. */
function describePublisher(caller: Caller): string {
  return caller.apiKeyId ? `api-key:${caller.apiKeyId}` : `user:${caller.userId}`
}

function buildDraft(publication: Publication, id: EventId): EventDraft {
  const [resource = '', action = ''] = publication.event.split('.')
  return {
    id,
    type: publication.event,
    // An event type without owner takes no account at all.
    accountScope: 'account',
    account: publication.account as AccountId | null,
    resource,
    action,
    resourceId: publication.id,
    url: publication.url,
  }
}
