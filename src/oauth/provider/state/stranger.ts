import { createHash } from 'node:crypto'
import { type AdapterPayload, errors, type KoaContextWithOIDC } from 'oidc-provider'
import { listNetworks } from '../../../http/request/address-group.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { takeStrangerPlace } from './stranger.store.ts'

/**
 * Rows caused by requests without a signed-in user or a client secret: limited for each network, for the wide network
 * around it, and for each client (docs/contract/oauth.md#rows-of-strangers).
 */

/** Time for which a self-registered client counts for its network. */
export const REGISTRATION_COUNTED_MS = 24 * 3_600_000

/**
 * Maximum number of rows of each kind for a network at a time, in multiples of the strict limit of a minute. Their
 * lifetimes are 60 s, 10 min, 30 min twice, some 5 min, and a day.
 */
const SHARES: Readonly<Record<string, number>> = {
  PushedAuthorizationRequest: 1,
  DeviceCode: 1,
  Interaction: 10,
  Session: 10,
  ReplayDetection: 20,
  Client: 1,
}

/** Limit of a wide network, in multiples of the limit of a network in it. */
const WIDE_SHARE = 5

/** Limit of a kind for all strangers of one client, in multiples of the strict limit of a minute. */
const CLIENT_SHARE = 200

/** Endpoints at which a row of the model is new. Later requests write the same row again. */
const BORN_AT: Readonly<Record<string, string>> = {
  PushedAuthorizationRequest: 'pushed_authorization_request',
  DeviceCode: 'device_authorization',
}

/** A row that a stranger causes. */
export interface StrangerRow {
  model: string
  address: string
  client: string
}

/** The stranger's row of a request; undefined for an authenticated request. Pure. */
export function findStrangerRow(
  { model, payload }: { model: string; payload: AdapterPayload },
  ctx: KoaContextWithOIDC | undefined,
): StrangerRow | undefined {
  if (!ctx || SHARES[model] === undefined) return undefined
  const { route, client } = ctx.oidc
  if (BORN_AT[model] !== undefined && BORN_AT[model] !== route) return undefined
  const isOfBrowser = model === 'Interaction' || model === 'Session'
  const session = payload.session as { accountId?: string } | undefined
  const isKnown = isOfBrowser
    ? (payload.accountId ?? session?.accountId) !== undefined
    : client !== undefined && client.clientAuthMethod !== 'none'
  return isKnown ? undefined : { model, address: ctx.ip, client: client?.clientId ?? '' }
}

const hashOf = (network: string) => createHash('sha256').update(network).digest()

/** Counts a stranger's row. Throws `temporarily_unavailable` when a limit is reached. */
export async function admitStranger(
  { db, strictPerMinute }: { db: Database; strictPerMinute: number },
  row: StrangerRow & { idHash: Buffer; expiresAt: Date; now: Date },
): Promise<void> {
  const { model, address, client, idHash, expiresAt, now } = row
  const network = strictPerMinute * (SHARES[model] ?? 1)
  const limits = { network, wideNetwork: network * WIDE_SHARE, client: strictPerMinute * CLIENT_SHARE }
  const networks = listNetworks(address).map(hashOf)
  const [networkHash] = networks
  const wideNetworkHash = networks.at(-1)
  if (!networkHash || !wideNetworkHash) return
  const place = { id: idHash, kind: model, networkHash, wideNetworkHash, client, expiresAt, now, limits }
  if (await takeStrangerPlace(db, place)) return
  throw new errors.TemporarilyUnavailable(
    'too many requests of this kind wait for an answer: try again in a few minutes',
  )
}
