import type { IdMaker } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import {
  type Incident,
  insertIncidents,
  type LastingIncident,
  listLastingIncidents,
  resolveIncidents,
} from './alert.store.ts'

export type NewIncident = Omit<Incident, 'id'>

/** Periodic check for begins and ends of one kind of incident; a transaction may begin it too. */
export interface IncidentCheck {
  incident: string
  /** `lasting`: the subjects with an open incident. Returns the new incidents, and the subjects of ended ones. */
  check(state: {
    db: Database
    now: Date
    lasting: readonly LastingIncident[]
  }): Promise<{ begun: readonly NewIncident[]; ended: readonly string[] }>
}

/** Runs one check and records its findings. An incident that is already open is not begun again. */
export async function runIncidentCheck(
  deps: { ids: IdMaker; db: Database },
  { incident, check }: IncidentCheck,
  now: Date,
): Promise<void> {
  const { db } = deps
  const lasting = await listLastingIncidents(db, { incident })
  const known = new Set(lasting.map(({ subject }) => subject))
  const { begun, ended } = await check({ db, now, lasting })
  const fresh = begun.filter(({ subject }) => !known.has(subject))
  await beginIncidents(deps, db, fresh, now)
  await endIncidents(db, { incident, subjects: ended, now })
}

/** Begins incidents, in the transaction that detects them; an open one is not begun again. */
export async function beginIncidents(
  deps: { ids: IdMaker },
  db: Database,
  incidents: readonly NewIncident[],
  now: Date,
): Promise<void> {
  if (incidents.length === 0) return
  const rows = incidents.map((incident) => ({ ...incident, id: deps.ids.next<'incident'>() }))
  await insertIncidents(db, rows, now)
}

/** Ends the open incidents of this kind for any of the subjects. */
export async function endIncidents(
  db: Database,
  input: { incident: string; subjects: readonly string[]; now: Date },
): Promise<void> {
  if (input.subjects.length > 0) await resolveIncidents(db, input)
}
