import type { Schemas } from '@signalbox/client'

/** How something that happened looks. */
export type StoryLook = 'neutral' | 'good' | 'bad' | 'wait'

/** One thing that happened around an event. */
export interface StoryEntry {
  /** Milliseconds. */
  atMs: number
  key: string
  look: StoryLook
  /** What happened. `details` are the values of its sentence. */
  kind: 'change' | 'recorded' | 'routed' | 'attempt' | 'planned' | 'realtime' | 'provisioning'
  details: Record<string, string | number | null>
  /** Where it is shown whole. */
  link?: { to: '/deliveries/$id' | '/users/$id' | '/webhooks/$id'; id: string }
}

/** What is known of an event; parts that the person may not see, or that have not come, are left out. */
export interface StoryParts {
  event: Schemas['EventOccurrence']
  audit: readonly Schemas['AuditEntry'][]
  deliveries: readonly { name: string; delivery: Schemas['DispatchWithAttempts'] }[]
  messages: readonly Schemas['RealtimeMessage'][]
  provisioning: readonly Schemas['ProvisioningDelivery'][]
}

const lookOf = (isGood: boolean): StoryLook => (isGood ? 'good' : 'bad')

/** Puts everything that happened around an event on one time line, the oldest first. Pure. */
export function buildStory({ event, audit, deliveries, messages, provisioning }: StoryParts): StoryEntry[] {
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
      (one): StoryEntry => ({
        atMs: Date.parse(one.created_at),
        key: `audit ${one.document_id}`,
        look: lookOf(one.outcome === 'success'),
        kind: 'change',
        details: {
          action: one.action,
          by: one.client_id ?? (one.user ?? one.api_key ?? '').slice(0, 8),
          request: one.request_id,
        },
        ...(one.user !== null && { link: { to: '/users/$id' as const, id: one.user } }),
      }),
    ),
    ...deliveries.flatMap(({ name, delivery }) => tellDelivery(name, delivery)),
    ...messages.map(
      (one): StoryEntry => ({
        atMs: Date.parse(one.ended_at ?? one.last_attempt_at ?? one.created_at),
        key: `message ${one.document_id}`,
        look: one.status === 'published' ? 'good' : one.ended_at === null ? 'wait' : 'bad',
        kind: 'realtime',
        details: { status: one.status, channels: one.channels.join(', '), attempts: one.attempts },
      }),
    ),
    ...provisioning.map(
      (one): StoryEntry => ({
        atMs: Date.parse(one.delivered_at ?? one.last_attempt_at ?? one.created_at),
        key: `provisioning ${one.document_id}`,
        look: one.delivered_at !== null ? 'good' : one.next_attempt_at !== null ? 'wait' : 'bad',
        kind: 'provisioning',
        details: { type: one.type, status: one.status, attempts: one.attempts },
      }),
    ),
  ]
  return entries.sort((one, other) => one.atMs - other.atMs || RANKS[one.kind] - RANKS[other.kind])
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
    (one): StoryEntry => ({
      atMs: Date.parse(one.started_at),
      key: `attempt ${delivery.document_id} ${one.attempt}`,
      look: lookOf(one.error_class === null),
      kind: 'attempt',
      details: { name, number: one.attempt, code: one.status_code, fault: one.error_class, ms: one.duration_ms },
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
