import type { Id } from '../../base/id.ts'
import { deletionOfOld } from '../../postgres/retention.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'

export type IncidentId = Id<'incident'>

/** An incident that is alerted once. */
export interface Incident {
  id: IncidentId
  /** Its kind, such as `provisioning-dead-letter`. */
  incident: string
  /** What it is about; of one kind and subject one incident lasts at a time. */
  subject: string
  summary: string
  /** The path that shows it. */
  url: string | null
}

const insert = statement<never>(`
  insert into alert_incident (document_id, incident, subject, summary, url, since, due_at)
  select x.*, $6, $6 from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[]) as x
  order by 2, 3
  on conflict (incident, subject) where resolved_at is null do nothing`)

/** Begins incidents that do not last already. */
export async function insertIncidents(db: Database, incidents: readonly Incident[], now: Date): Promise<void> {
  const column = <Value>(pick: (one: Incident) => Value) => incidents.map(pick)
  await insert(db, [
    column((one) => one.id),
    column((one) => one.incident),
    column((one) => one.subject),
    column((one) => one.summary),
    column((one) => one.url),
    now,
  ])
}

const resolve = statement<never>(`
  update alert_incident set resolved_at = $3, due_at = $3, attempts = 0
  where incident = $1 and subject = any($2::text[]) and resolved_at is null`)

/** Ends the incidents of this kind that last for any of the subjects. */
export async function resolveIncidents(
  db: Database,
  { incident, subjects, now }: { incident: string; subjects: readonly string[]; now: Date },
): Promise<void> {
  await resolve(db, [incident, subjects, now])
}

/** A subject for which an incident lasts. */
export interface LastingIncident {
  subject: string
  since: Date
}

const selectLasting = statement<LastingIncident>(
  'select subject, since from alert_incident where incident = $1 and resolved_at is null order by subject',
)

/** The subjects for which incidents of this kind last. */
export function listLastingIncidents(db: Database, incident: string): Promise<LastingIncident[]> {
  return selectLasting(db, [incident])
}

/** An incident whose beginning or end is to be posted. */
export interface DueIncident extends Incident {
  status: 'firing' | 'resolved'
  since: Date
  resolvedAt: Date | null
  attempts: number
}

const claim = statement<{
  document_id: IncidentId
  incident: string
  subject: string
  summary: string
  url: string | null
  since: Date
  resolved_at: Date | null
  is_firing: boolean
  attempts: number
}>(`
  update alert_incident set due_at = $2, attempts = attempts + 1
  where document_id = any(array(
    select document_id from alert_incident
    where (firing_posted_at is null or (resolved_at is not null and resolved_posted_at is null)) and due_at <= $1
      and (resolved_at is null or firing_posted_at is not null or resolved_at > $1::timestamptz - interval '1 day')
    order by due_at limit $3 for update skip locked))
  returning document_id, incident, subject, summary, url, since, resolved_at, firing_posted_at is null as is_firing, attempts`)

/**
 * Claims incidents that are due, until `leaseEnd`: after it another process may post them. One that ended a day ago and was
 * never posted, because there was no receiver, is left out.
 */
export async function claimIncidents(
  db: Database,
  { now, leaseEnd, limit }: { now: Date; leaseEnd: Date; limit: number },
): Promise<DueIncident[]> {
  const rows = await claim(db, [now, leaseEnd, limit])
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

const markFiring = statement<never>(
  'update alert_incident set firing_posted_at = $2, due_at = $2, attempts = 0 where document_id = $1',
)
const markResolved = statement<never>('update alert_incident set resolved_posted_at = $2 where document_id = $1')

/** Records that the beginning or the end of an incident was posted. */
export async function markPosted(
  db: Database,
  { id, status }: Pick<DueIncident, 'id' | 'status'>,
  now: Date,
): Promise<void> {
  await (status === 'firing' ? markFiring : markResolved)(db, [id, now])
}

const postpone = statement<never>('update alert_incident set due_at = $2 where document_id = $1')

/** Lets an incident be posted again later. */
export async function postponeIncident(db: Database, id: IncidentId, dueAt: Date): Promise<void> {
  await postpone(db, [id, dueAt])
}

/** Deletes up to `limit` incidents that ended before `before`. Returns how many went. */
export const deleteOldIncidents = deletionOfOld('alert_incident', { key: 'document_id', time: 'resolved_at' })
