import type pg from 'pg'
import type { IdentitySecrets } from './api-case.ts'
import { BARE_STATEMENTS, type BareStatement } from './bare-statements.ts'

/** Options of the bare server. */
export interface BareOptions {
  connectionString: string
  poolSize: number
  /** Whom its rows name, as those of the service name the caller. */
  userId: string
  sessionId: string
  /** Whether a change writes an idempotency key: as long as the service does. */
  keepsIdempotencyKey: boolean
  /** Signing secret of tokens. */
  secrets: IdentitySecrets
  /** Whether every request with a bearer token has its signature checked. */
  checksBearer: boolean
  /** Where its publish route posts each event once it is committed; left out, it posts nothing. */
  deliversTo?: string
}

export type Row = Record<string, unknown>
type Queryable = Pick<pg.Pool | pg.PoolClient, 'query'>
/** Dependencies of a bare route. */
export type Bare = BareOptions & { pool: pg.Pool }

/** The length of a stored trace context, which a bare route does not make. */
export const TRACE = `00-${'0af7651916cd43dd8448eb211c80319c'}-${'b7ad6b7169203331'}-00`

/** Runs one of the prepared statements. */
export async function run(db: Queryable, name: BareStatement, values: unknown[]): Promise<Row[]> {
  const { rows } = await db.query<Row>({ name, text: BARE_STATEMENTS[name], values })
  return rows
}

/** Runs `work` in a transaction on a connection of its own. */
export async function inTransaction<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const result = await work(client)
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}
