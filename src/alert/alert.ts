import type { IdMaker } from '../id.ts'
import type { Database } from '../postgres/database.ts'
import { type Incident, insertIncidents, resolveIncidents } from './alert.store.ts'

/** Begins incidents, in the transaction that finds them; one that lasts already is not begun again. */
export async function beginIncidents(
  deps: { ids: IdMaker },
  db: Database,
  incidents: readonly Omit<Incident, 'id'>[],
  now: Date,
): Promise<void> {
  if (incidents.length === 0) return
  const rows = incidents.map((one) => ({ ...one, id: deps.ids.next<'incident'>() }))
  await insertIncidents(db, rows, now)
}

/** Ends the incidents of this kind that last for any of the subjects. */
export async function endIncidents(
  db: Database,
  input: { incident: string; subjects: readonly string[]; now: Date },
): Promise<void> {
  if (input.subjects.length > 0) await resolveIncidents(db, input)
}
