import { deletionOfOld } from '../../../postgres/retention.ts'
import { countBehindLock } from '../../../postgres/statement/counted-limit.ts'
import type { Database } from '../../../postgres/statement/database.ts'

/** The slot of a stranger's row until its expiry. */
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

const take = countBehindLock<
  { is_admitted: boolean },
  Omit<StrangerPlace, 'limits'> & { networkLimit: number; wideNetworkLimit: number; clientLimit: number }
>({
  counts: 'rows of strangers',
  lock: 'strangers',
  by: 'admit_stranger',
  adds: true,
  call: `select admit_stranger($id, $kind, $networkHash, $wideNetworkHash, $client, $expiresAt, $now,
    $networkLimit, $wideNetworkLimit, $clientLimit) as is_admitted`,
})

/** Counts a row, once for each id. False beyond a limit, also with parallel calls. */
export async function takeStrangerPlace(db: Database, place: StrangerPlace): Promise<boolean> {
  const { network, wideNetwork, client } = place.limits
  const limits = { networkLimit: network, wideNetworkLimit: wideNetwork, clientLimit: client }
  const [row] = await take(db, { ...place, ...limits })
  return row?.is_admitted === true
}

/** Deletes up to `limit` slots that expired before `before`. Returns their number. For maintenance. */
export const deleteExpiredStrangers = deletionOfOld('stranger_row', { key: 'id', time: 'expires_at' })
