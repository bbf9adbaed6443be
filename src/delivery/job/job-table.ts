import { NIL_ID } from '../../base/id.ts'
import { type ChangedColumns, columnChange } from '../../postgres/statement/column-change.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { compileFragment } from '../../postgres/statement/fragment.ts'
import { columnStatement, rowStatement } from '../../postgres/statement/statement.ts'
import type { JobStatus } from './job-state.ts'

const RUNNING_LIMIT = 100

/** Changes of a job by a runner, besides the counts of its kind. Omitted members stay. */
interface JobChange {
  status?: JobStatus
  failures?: number
  lastError?: string | null
  endedAt?: Date | null
}

const CHANGED: ChangedColumns<JobChange> = {
  status: 'status = $status',
  failures: 'failures = $failures',
  lastError: 'last_error = $lastError',
  endedAt: 'ended_at = $endedAt',
}

/** Moves a job from one of the states `from` to another. */
export interface JobTransition {
  from: readonly JobStatus[]
  to: JobStatus
  endedAt: Date | null
  now: Date
}

/** A table of jobs of one kind, with the columns `document_id`, `status`, `failures`, `last_error` and the times. */
export interface JobTable<Id extends string, Job, Progress extends object> {
  find(db: Database, id: string): Promise<Job | undefined>
  /** Moves a job, without failures from then on. Undefined when none with this id is in one of the states `from`. */
  move(db: Database, id: string, step: JobTransition): Promise<Job | undefined>
  /** Running jobs, oldest first: those after `after`, or from the first. At most 100. */
  listRunning(db: Database, after: Id | null): Promise<Id[]>
  change(db: Database, id: Id, change: Progress & JobChange, now: Date): Promise<Job>
}

/** Builds the statements of a table of jobs from the members of a record and the changes that progress makes. */
export function buildJobTable<Id extends string, Job extends object, Progress extends object>(parts: {
  table: string
  members: string
  progress: ChangedColumns<Progress>
}): JobTable<Id, Job, Progress> {
  const { table, members } = parts
  const find = rowStatement<Job, { id: string }>(`select ${members} from ${table} where document_id = $id`)
  const moveOne = rowStatement<Job, JobTransition & { id: string }>(`
    update ${table} set status = $to, failures = 0, last_error = null, ended_at = $endedAt, updated_at = $now
    where document_id = $id and status = any($from) returning ${members}`)
  const selectRunning = columnStatement<Id, { after: string }>(`
    select document_id from ${table} where status = 'running' and document_id > $after
    order by document_id limit ${RUNNING_LIMIT}`)
  const columns = { ...parts.progress, ...CHANGED, now: 'updated_at = $now' }
  const changeColumns = columnChange<Record<string, unknown>>(table, columns, members)
  return {
    find: (db, id) => find(db, { id }),
    move: (db, id, step) => moveOne(db, { id, ...step }),
    listRunning: (db, after) => selectRunning(db, { after: after ?? NIL_ID }),
    change: async (db, id, change, now) => {
      const { rows } = await db.executeQuery<Job>(compileFragment(changeColumns(id, { ...change, now })))
      if (!rows[0]) throw new Error(`no row of ${table} has the id ${id}`)
      return rows[0]
    },
  }
}
