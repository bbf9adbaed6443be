import { countBehindLock } from '../../../postgres/statement/counted-limit.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { statement } from '../../../postgres/statement/statement.ts'

/** A place that a row of a stranger takes until it expires. */
export interface StrangerPlace {
  id: Buffer
  kind: string
  networkHash: Buffer
  wideNetworkHash: Buffer
  client: string
  expiresAt: Date
  now: Date
  limits: { network: number; wideNetwork: number; client: number }
}

const take = countBehindLock<{ is_admitted: boolean }>({
  counts: 'rows of strangers',
  lock: 'strangers',
  by: 'admit_stranger',
  adds: true,
  call: 'select admit_stranger($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) as is_admitted',
})

/** Takes a place, once for each id. False when a limit is reached: of parallel calls no more than are left get true. */
export async function takeStrangerPlace(db: Database, place: StrangerPlace): Promise<boolean> {
  const { id, kind, networkHash, wideNetworkHash, client, expiresAt, now, limits } = place
  const counted = [limits.network, limits.wideNetwork, limits.client]
  const [row] = await take(db, [id, kind, networkHash, wideNetworkHash, client, expiresAt, now, ...counted])
  return row?.is_admitted === true
}

const removeExpired = statement(`
  delete from stranger_row where id = any(array(
    select id from stranger_row where expires_at < $1 order by expires_at limit $2 for update skip locked))
  returning 1`)

/** Deletes up to `limit` places that expired before `before`. Returns their number. For maintenance. */
export async function deleteExpiredStrangers(db: Database, before: Date, limit: number): Promise<number> {
  return (await removeExpired(db, [before, limit])).length
}
