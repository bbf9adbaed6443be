import type { WebhookId } from '../../base/id.ts'
import type { IncidentCheck, NewIncident } from '../../delivery/incident/alert.ts'
import { listDisabled, listFailing } from './incident.store.ts'
import type { RecordedAttempt, WebhookNotice } from './outcome.ts'

/** Begun by the attempt whose failure disables a webhook; ends when it is active again or deleted. */
const DISABLED_INCIDENT = 'webhook-disabled'

/** Begun by an exhausted delivery; ends with the next success of the webhook, and when it is deleted. */
const EXHAUSTED_INCIDENT = 'deliveries-exhausted'

/** The incidents begun by recorded attempts. Tests and replays begin none. Pure. */
export function listWebhookIncidents(
  recorded: readonly RecordedAttempt[],
  notices: readonly WebhookNotice[],
): NewIncident[] {
  const disabled = notices.filter(({ event }) => event === 'webhook.auto-disable').map(({ webhook }) => webhook)
  const exhausted = recorded
    .filter(({ decision }) => decision.status === 'exhausted' && decision.failureCount === 'add')
    .map(({ attempt }) => attempt.webhook)
  return [
    ...describe(
      disabled,
      DISABLED_INCIDENT,
      (id) => `The webhook ${id} was disabled after 20 failed deliveries in a row.`,
    ),
    ...describe(
      exhausted,
      EXHAUSTED_INCIDENT,
      (id) => `A delivery to the webhook ${id} has failed with all five POSTs.`,
    ),
  ]
}

function describe(webhooks: readonly WebhookId[], incident: string, say: (id: WebhookId) => string): NewIncident[] {
  return [...new Set(webhooks)].map((id) => ({
    incident,
    subject: id,
    summary: say(id),
    url: `/api/v3/webhook/webhook/${id}`,
  }))
}

/** Find the ends of webhook incidents, so that requests that activate a webhook need not check them. */
export const WEBHOOK_INCIDENT_CHECKS: readonly IncidentCheck[] = [
  { incident: DISABLED_INCIDENT, check: ({ db, lasting }) => keep(lasting, (ids) => listDisabled(db, ids)) },
  { incident: EXHAUSTED_INCIDENT, check: ({ db, lasting }) => keep(lasting, (ids) => listFailing(db, { ids })) },
]

async function keep(lasting: readonly { subject: string }[], find: (ids: readonly string[]) => Promise<string[]>) {
  const subjects = lasting.map(({ subject }) => subject)
  const still = new Set(subjects.length > 0 ? await find(subjects) : [])
  return { begun: [], ended: subjects.filter((subject) => !still.has(subject)) }
}
