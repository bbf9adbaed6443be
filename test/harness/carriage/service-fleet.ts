import type { TestDatabase } from '../database/database.ts'
import type { DeliveryFixture } from '../delivery/delivery-process.ts'
import type { ServiceProcess } from '../process/service-process.ts'
import { waitFor } from '../run/wait.ts'
import { loseProcess } from './moved-traffic.ts'

/** What one process at a time does for a database. */
export type Duty = 'relay' | 'intake'

/** Worker processes on home and its cells, each replaced when it is killed. */
export interface ServiceFleet {
  /** Kills the process that has a duty in a database, and starts another one. */
  killHolder(database: TestDatabase, duty: Duty): Promise<void>
  /** Kills any one of them, and starts another one. */
  killAny(): Promise<void>
  /** The number of processes that were killed. */
  killed(): number
}

const HOLDERS: Readonly<Record<Duty, string>> = {
  relay: 'select relay as holder from event_log where lease_until > clock_timestamp()',
  intake: 'select runner as holder from log_intake where lease_until > clock_timestamp()',
}

/** Starts so many processes. `databases`: home and the cells. */
export async function startFleet(
  fixture: DeliveryFixture,
  given: { size: number; databases: readonly TestDatabase[]; env: Record<string, string> },
): Promise<ServiceFleet> {
  const { size, databases, env } = given
  const start = () => fixture.start({ env, roles: 'dispatcher,maintenance' })
  const running = new Set<ServiceProcess>(await Promise.all(Array.from({ length: size }, start)))
  let killed = 0

  async function kill(process: ServiceProcess): Promise<void> {
    running.delete(process)
    await process.kill()
    killed += 1
    for (const database of databases) {
      await loseProcess(database, process.pid)
      await loseDuties(database, process.pid)
    }
    running.add(await start())
  }

  /** The process of a lease; undefined while nobody, or one that is gone, has it. */
  async function findHolder({ pool }: TestDatabase, duty: Duty): Promise<ServiceProcess | undefined> {
    const { rows } = await pool.query<{ holder: string }>(HOLDERS[duty])
    return [...running].find(({ pid }) => rows[0]?.holder.includes(`:${pid}:`))
  }

  return {
    killHolder: async (database, duty) =>
      kill(await waitFor(`a process with the ${duty}`, () => findHolder(database, duty), { limitMs: 120_000 })),
    killAny: async () => {
      const [first] = running
      if (first) await kill(first)
    },
    killed: () => killed,
  }
}

/** Stands for the time after which the duties of a killed process are free. */
async function loseDuties({ pool }: TestDatabase, pid: number): Promise<void> {
  const lost = `lease_until = now() - interval '1 s'`
  await pool.query(`update event_log set ${lost} where relay like $1`, [`%:${pid}:%`])
  await pool.query(`update log_intake set ${lost} where runner like $1`, [`%:${pid}:%`])
}

/**
 * Ends the connections of the service to a database, those of replication with them. Returns how many. One that is being
 * opened has no name yet, and may be of the test.
 */
export async function endConnections({ pool }: TestDatabase): Promise<number> {
  const { rowCount } = await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where backend_type in ('client backend', 'walsender') and application_name not in ('', 'signalbox test')`,
  )
  return rowCount ?? 0
}
