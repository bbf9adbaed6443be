import type { Id } from '../../base/id.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { changeStatement, statement } from '../../postgres/statement/statement.ts'
import { sweepLedger } from '../../postgres/sweep.ts'

export type IncidentId = Id<'incident'>

/** An incident that is alerted once. */
export interface Incident {
  id: IncidentId
  /** Its kind, such as `provisioning-dead-letter`. */
  incident: string
  /** Subject; at most one incident of a kind and subject is open. */
  subject: string
  summary: string
  /** Path of the API that shows it. */
  url: string | null
}

const insert = statement<
  never,
  {
    ids: readonly IncidentId[]
    kinds: readonly string[]
    subjects: readonly string[]
    summaries: readonly string[]
    urls: readonly (string | null)[]
    now: Date
  }
>(`
  insert into alert_incident (document_id, incident, subject, summary, url, since, due_at)
  select x.*, $now, $now
  from unnest($ids::uuid[], $kinds::text[], $subjects::text[], $summaries::text[], $urls::text[]) as x
  order by 2, 3
  on conflict (incident, subject) where resolved_at is null do nothing`)

/** Begins incidents that are not already open. */
export async function insertIncidents(db: Database, incidents: readonly Incident[], now: Date): Promise<void> {
  const column = <Value>(pick: (incident: Incident) => Value) => incidents.map(pick)
  await insert(db, {
    ids: column((row) => row.id),
    kinds: column((row) => row.incident),
    subjects: column((row) => row.subject),
    summaries: column((row) => row.summary),
    urls: column((row) => row.url),
    now,
  })
}

/** Ends the open incidents of this kind for any of the subjects. */
export const resolveIncidents = changeStatement<{ incident: string; subjects: readonly string[]; now: Date }>(`
  update alert_incident set resolved_at = $now, due_at = $now, attempts = 0
  where incident = $incident and subject = any($subjects::text[]) and resolved_at is null`)

/** A subject with an open incident. */
export interface LastingIncident {
  subject: string
  since: Date
}

/** The subjects with open incidents of this kind. */
export const listLastingIncidents = statement<LastingIncident, { incident: string }>(
  'select subject, since from alert_incident where incident = $incident and resolved_at is null order by subject',
)

/** An incident whose begin or end is due for a POST. */
export interface DueIncident extends Incident {
  status: 'firing' | 'resolved'
  since: Date
  resolvedAt: Date | null
  attempts: number
}

/** The incident `r` is of a webhook whose account rests: it is posted where the account is. */
const IS_RESTING = `case when r.subject ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then (
          select is_resting(w.account) from webhook w where w.document_id = r.subject::uuid) end`

const claim = statement<
  {
    document_id: IncidentId
    incident: string
    subject: string
    summary: string
    url: string | null
    since: Date
    resolved_at: Date | null
    is_firing: boolean
    attempts: number
  },
  { now: Date; leaseEnd: Date; limit: number }
>(`
  update alert_incident set due_at = $leaseEnd, attempts = attempts + 1
  where document_id = any(array(
    select document_id from alert_incident r
    where (firing_posted_at is null or (resolved_at is not null and resolved_posted_at is null)) and due_at <= $now
      and (resolved_at is null or firing_posted_at is not null or resolved_at > $now::timestamptz - interval '1 day')
      and (${IS_RESTING}) is not true
    order by due_at limit $limit for update skip locked))
  returning document_id, incident, subject, summary, url, since, resolved_at, firing_posted_at is null as is_firing, attempts`)

/** Claims due incidents until `leaseEnd`. One that ended a day ago and was never posted is dropped. */
export async function claimIncidents(
  db: Database,
  { now, leaseEnd, limit }: { now: Date; leaseEnd: Date; limit: number },
): Promise<DueIncident[]> {
  const rows = await claim(db, { now, leaseEnd, limit })
  return rows.map((row) => ({
    id: row.document_id,
    incident: row.incident,
    subject: row.subject,
    summary: row.summary,
    url: row.url,
    since: row.since,
    resolvedAt: row.is_firing ? null : row.resolved_at,
    status: row.is_firing ? 'firing' : 'resolved',
    attempts: row.attempts,
  }))
}

const markFiring = changeStatement<{ id: IncidentId; now: Date }>(
  'update alert_incident set firing_posted_at = $now, due_at = $now, attempts = 0 where document_id = $id',
)
const markResolved = changeStatement<{ id: IncidentId; now: Date }>(
  'update alert_incident set resolved_posted_at = $now where document_id = $id',
)

/** Records that the begin or the end of an incident was posted. */
export async function markPosted(
  db: Database,
  { id, status }: Pick<DueIncident, 'id' | 'status'>,
  now: Date,
): Promise<void> {
  await (status === 'firing' ? markFiring : markResolved)(db, { id, now })
}

/** Lets an incident be posted again later. */
export const postponeIncident = changeStatement<{ id: IncidentId; dueAt: Date }>(
  'update alert_incident set due_at = $dueAt where document_id = $id',
)

/** Lets an incident be posted again, of which no POST was begun. Does nothing when it was claimed or has ended since. */
export const giveBackIncident = changeStatement<{ id: IncidentId; attempts: number; dueAt: Date }>(
  'update alert_incident set due_at = $dueAt, attempts = attempts - 1 where document_id = $id and attempts = $attempts',
)

/** Deletes up to `limit` incidents that ended before `before`. Returns their number. */
const deleteOldIncidents = deletionOfOld('alert_incident', { key: 'document_id', time: 'resolved_at' })

/** Ended incidents are kept as long as the ledgers. */
export const incidentSweep = sweepLedger('incidents', deleteOldIncidents)
