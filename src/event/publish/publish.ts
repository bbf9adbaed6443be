import type { AccountId, EventId } from '../../base/id.ts'
import type { FieldError } from '../../http/problem/field-error.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { Caller, PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { EventRecord } from '../occurrence/event.store.ts'
import { buildEvents, type EventDeps, type EventDraft } from '../occurrence/event.ts'
import { findResourceUrlError } from '../occurrence/resource-url.ts'
import {
  buildPublicationProblem,
  findPublicationErrors,
  hashPublication,
  KEY_REUSED,
  type PathOf,
  type Publication,
} from './publication-rules.ts'
import { listPublishKeys, type PublishKey, readPublishContext, recordPublications } from './publish.store.ts'

/** Lifetime of a publisher's idempotency key. */
export const PUBLISH_KEY_KEPT_MS = 24 * 3_600_000

/** An event type with the account of a publication. */
export interface PublishedPair {
  event: string
  account: string | null
  /** Whether the publisher may use only event types visible to account roles. */
  isOfTenant: boolean
}

export interface PublishInput {
  /** The publisher's scope, checked by `checkTenantMayPublish`. */
  scope: PermissionScope
  publications: readonly Publication[]
  pathOf: PathOf
  caller: Caller
  now: Date
  /** Trace of the request, continued by the deliveries of its events. */
  trace: string | null
}

/** Limit of publications for an account. */
export interface PublishLimiter {
  /** Counts one publication for each entry of `accounts`, all or nothing. Throws 429 `rate_limited`. */
  take(db: Database, name: 'published_per_minute', accounts: readonly (AccountId | null)[]): Promise<void>
}

export interface PublishDeps extends EventDeps {
  accountLimits: PublishLimiter
  /** Records the events and audit entries of a request; false, and nothing is stored, when a rule is broken. */
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
  /** The 422 that names every broken rule, or a 409 if the request is valid by now. */
  explain: (db: Database) => Promise<Problem>
}

/**
 * Builds the events of publications without keys; undefined for a key, a URL that breaks a rule, or while the event
 * queue is off: these need `publishEvents`.
 */
export function planPublications(
  deps: PublishDeps,
  { publications, pathOf, scope, now, trace }: Omit<PublishInput, 'caller'>,
): UnkeyedPublications | undefined {
  const isPlain = (publication: Publication) =>
    publication.idempotencyKey === null && !findResourceUrlError(publication.url)
  if (!deps.enableApiEventQueue || !publications.every(isPlain)) return undefined
  const ids = publications.map(() => deps.ids.next<'event'>())
  const events = buildEvents(deps, listDrafts(publications, ids, trace), now)
  const isOfTenant = scope !== 'all'
  const pairs = [
    ...new Map(
      publications.map((publication) => [
        `${publication.event} ${publication.account}`,
        { ...publication, isOfTenant },
      ]),
    ).values(),
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
 * Records events of other services, all or none (docs/contract/events.md#publishing-from-outside). Returns the ids in order;
 * for a used key that of the earlier event. Throws 422 with every broken rule, 409 while the event queue is off.
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

/** Checks publications before they are recorded in several databases. Throws the 422 that names every broken rule. */
export async function checkPublications(
  db: Database,
  { publications, scope, pathOf }: Pick<PublishInput, 'publications' | 'scope' | 'pathOf'>,
): Promise<void> {
  const context = await readPublishContext(db, listAsked(publications))
  checkErrors(findPublicationErrors(publications, { ...context, scope }, pathOf))
}

function listAsked(publications: readonly Publication[]): { names: string[]; accounts: string[] } {
  return {
    names: [...new Set(publications.map((publication) => publication.event))],
    accounts: [...new Set(publications.flatMap((publication) => publication.account ?? []))],
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

/** One id for each publication; those with the same key share one. */
function assignIds(deps: Pick<EventDeps, 'ids'>, publications: readonly Publication[]): EventId[] {
  const ofKey = new Map<string, EventId>()
  return publications.map(({ idempotencyKey: key }) => {
    const id = (key === null ? undefined : ofKey.get(key)) ?? deps.ids.next<'event'>()
    if (key !== null) ofKey.set(key, id)
    return id
  })
}

/** A key of a batch, and its first publication. */
type AskedKey = PublishKey & { index: number }

function listKeys(publications: readonly Publication[], ids: readonly EventId[]): AskedKey[] {
  const keys = new Map<string, AskedKey>()
  publications.forEach((publication, index) => {
    const key = publication.idempotencyKey
    if (key !== null && !keys.has(key))
      keys.set(key, { key, contentHash: hashPublication(publication), eventId: ids[index] as EventId, index })
  })
  return [...keys.values()]
}

/** The events of used keys, by key. Throws a 422 for other content. */
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
  return new Map(used.map((item) => [item.key, item.eventId]))
}

/** A user's keys are shared by its sessions; an API key has its own, since each belongs to another program. */
function describePublisher(caller: Caller): string {
  return caller.apiKeyId ? `api-key:${caller.apiKeyId}` : `user:${caller.userId}`
}

function buildDraft(publication: Publication, id: EventId): EventDraft {
  const [resource = '', action = ''] = publication.event.split('.')
  return {
    id,
    type: publication.event,
    // An event type without an owner takes no account.
    accountScope: 'account',
    account: publication.account as AccountId | null,
    resource,
    action,
    resourceId: publication.id,
    url: publication.url,
  }
}
