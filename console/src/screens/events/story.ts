import type { Schemas } from '@signalbox/client'

/** How something that happened looks. */
export type StoryLook = 'neutral' | 'good' | 'bad' | 'wait'

/** One thing that happened around an event. */
export interface StoryEntry {
  /** Milliseconds. */
  atMs: number
  key: string
  look: StoryLook
  /** Entry of the story. `details` are the values of its sentence. */
  kind: 'change' | 'recorded' | 'routed' | 'attempt' | 'planned' | 'realtime' | 'provisioning'
  details: Record<string, string | number | null>
  /** Where it is shown whole. */
  link?: { to: '/deliveries/$id' | '/users/$id' | '/webhooks/$id'; id: string }
}

/** Known parts of an event; those that the user may not see, or that have not loaded, are left out. */
export interface StoryParts {
  event: Schemas['EventOccurrence']
  audit: readonly Schemas['AuditEntry'][]
  /** Users by id, as far as they are known. */
  users: ReadonlyMap<string, Pick<Schemas['User'], 'name' | 'email'>>
  deliveries: readonly { name: string; delivery: Schemas['DispatchWithAttempts'] }[]
  messages: readonly Schemas['RealtimeMessage'][]
  provisioning: readonly Schemas['ProvisioningDelivery'][]
}

const lookOf = (isGood: boolean): StoryLook => (isGood ? 'good' : 'bad')

/** The user by its name, else by the first characters of its id; an app, and an end user of the portal, as they are given. */
function nameActor(entry: Schemas['AuditEntry'], users: StoryParts['users']): string {
  const { client_id: app, external_user: external, user: id, api_key: key } = entry
  const user = id === null ? undefined : users.get(id)
  return app ?? external ?? user?.name ?? user?.email ?? (id ?? key ?? '').slice(0, 8)
}

/** Puts everything that happened around an event on one time line, the oldest first. Pure. */
export function buildStory({ event, audit, users, deliveries, messages, provisioning }: StoryParts): StoryEntry[] {
  const entries: StoryEntry[] = [
    {
      atMs: Date.parse(event.created_at),
      key: 'recorded',
      look: 'neutral',
      kind: 'recorded',
      details: { event: event.event },
    },
    ...(event.routed_at === null
      ? []
      : [
          {
            atMs: Date.parse(event.routed_at),
            key: 'routed',
            look: 'neutral' as const,
            kind: 'routed' as const,
            details: { count: deliveries.length },
          },
        ]),
    ...audit.map(
      (item): StoryEntry => ({
        atMs: Date.parse(item.created_at),
        key: `audit ${item.document_id}`,
        look: lookOf(item.outcome === 'success'),
        kind: 'change',
        details: {
          action: item.action,
          by: nameActor(item, users),
          request: item.request_id,
        },
        ...(item.user !== null && { link: { to: '/users/$id' as const, id: item.user } }),
      }),
    ),
    ...deliveries.flatMap(({ name, delivery }) => tellDelivery(name, delivery)),
    ...messages.map(
      (message): StoryEntry => ({
        atMs: Date.parse(message.ended_at ?? message.last_attempt_at ?? message.created_at),
        key: `message ${message.document_id}`,
        look: message.status === 'published' ? 'good' : message.ended_at === null ? 'wait' : 'bad',
        kind: 'realtime',
        details: { status: message.status, channels: message.channels.join(', '), attempts: message.attempts },
      }),
    ),
    ...provisioning.map(
      (item): StoryEntry => ({
        atMs: Date.parse(item.delivered_at ?? item.last_attempt_at ?? item.created_at),
        key: `provisioning ${item.document_id}`,
        look: item.delivered_at !== null ? 'good' : item.next_attempt_at !== null ? 'wait' : 'bad',
        kind: 'provisioning',
        details: { type: item.type, status: item.status, attempts: item.attempts },
      }),
    ),
  ]
  // An audit entry is written after the change, and so perhaps after what came of it.
  const recordedMs = Date.parse(event.created_at)
  const placeOf = ({ kind, atMs }: StoryEntry) => (kind === 'change' ? Math.min(atMs, recordedMs) : atMs)
  return entries.sort((a, b) => placeOf(a) - placeOf(b) || RANKS[a.kind] - RANKS[b.kind])
}

/** The order of what has one instant: a change before its event, and its event before what came of it. */
const RANKS: Record<StoryEntry['kind'], number> = {
  change: 0,
  recorded: 1,
  routed: 2,
  realtime: 3,
  provisioning: 4,
  attempt: 5,
  planned: 6,
}

function tellDelivery(name: string, delivery: Schemas['DispatchWithAttempts']): StoryEntry[] {
  const link = { to: '/deliveries/$id' as const, id: delivery.document_id }
  const made = delivery.attempts_log.map(
    (item): StoryEntry => ({
      atMs: Date.parse(item.started_at),
      key: `attempt ${delivery.document_id} ${item.attempt}`,
      look: lookOf(item.error_class === null),
      kind: 'attempt',
      details: { name, number: item.attempt, code: item.status_code, fault: item.error_class, ms: item.duration_ms },
      link,
    }),
  )
  if (delivery.next_attempt_at === null) return made
  const planned: StoryEntry = {
    atMs: Date.parse(delivery.next_attempt_at),
    key: `planned ${delivery.document_id}`,
    look: 'wait',
    kind: 'planned',
    details: { name, number: delivery.attempts + 1 },
    link,
  }
  return [...made, planned]
}
