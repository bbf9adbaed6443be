import type { KeyObject } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { DispatchId, IdMaker } from '../../base/id.ts'
import { buildDeliveryHeaders } from '../../delivery/post/delivery-headers.ts'
import { openSealed, type SealedCache, type SecretCache } from '../../delivery/post/secret-cache.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { PermissionScope } from '../../http/shape/caller.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import type { ClaimedDispatch } from '../delivery/claimed-work.ts'
import type { SettleDeps, SettledAttempts } from '../delivery/settle.ts'
import { buildEnvelope } from '../envelope/envelope.ts'
import { checkQueueEnabled } from '../ledger/dispatch.ts'
import { loadWithin } from '../reach/account-reach.ts'
import type { WebhookRecord } from '../registry/webhook.store.ts'
import { loadWebhook } from '../registry/webhook.ts'
import { type Backlog, leaseDue, readBacklog } from './pull.store.ts'
import type { PullPlace, PullWaits } from './pull-waits.ts'

export interface PullDeps extends SettleDeps {
  clock: Pick<Clock, 'now'>
  ids: IdMaker
  secrets: SecretCache
  /** The private keys of asymmetric signatures. */
  signingKeys: SealedCache<KeyObject>
  userAgent: string
  waits: PullWaits
  /** Runs after acknowledgements were recorded, for log, metrics and notices. */
  onSettled: (settled: SettledAttempts) => void
}

export interface PullRequest {
  db: Database
  id: string
  scope: PermissionScope
  max: number
  waitSeconds: number
  leaseSeconds: number
  /** The subject of the caller's limits. */
  caller: string
  /** Checks the caller again, and returns its scope. Throws 401 and 403. */
  recheck: () => Promise<PermissionScope>
  /** Reports the end of the caller's connection. Returns what ends the watch. */
  watch: (onClosed: () => void) => () => void
}

export interface LeasedDelivery {
  id: DispatchId
  receipt: string
  attempt: number
  leaseUntil: Date
  headers: Record<string, string>
  body: string
}

/**
 * Leases due deliveries of a webhook (docs/contract/pull.md#pull); without one it waits for the first. The wait holds no
 * connection. It ends with the caller's access or connection, with the webhook, and with the process. Throws 404, 409
 * `conflict` or `webhook_inactive`, 429 `rate_limited` and 503 `overloaded` for too many that wait.
 */
export async function pullDeliveries(deps: PullDeps, request: PullRequest): Promise<LeasedDelivery[]> {
  const untilMs = deps.clock.now() + request.waitSeconds * 1_000
  checkQueueEnabled(deps)
  const webhook = await loadActive(request, request.scope)
  if (request.waitSeconds === 0) return lease(deps, request, webhook)
  const { waits } = deps
  // Before the first look, so that no notification is missed.
  const place = waits.enter({ webhook: webhook.id, caller: request.caller, account: webhook.account })
  const unwatch = request.watch(place.end)
  try {
    const leased = await lease(deps, request, webhook)
    return leased.length > 0 ? leased : await waitFor(deps, request, { place, untilMs })
  } finally {
    unwatch()
    place.leave()
  }
}

async function waitFor(
  deps: PullDeps,
  request: PullRequest,
  { place, untilMs }: { place: PullPlace; untilMs: number },
): Promise<LeasedDelivery[]> {
  while (deps.clock.now() < untilMs && !place.isOver()) {
    const isReady = await place.wait()
    // A lease taken now would have no receiver.
    if (place.isOver()) return []
    const scope = await request.recheck()
    if (!isReady) continue
    const leased = await lease(deps, request, await loadActive(request, scope))
    if (leased.length > 0) return leased
  }
  return []
}

/** The webhook of a pull. Throws 404, and 409 for one that does not pull, or is inactive. */
async function loadActive({ db, id }: Pick<PullRequest, 'db' | 'id'>, scope: PermissionScope): Promise<WebhookRecord> {
  const webhook = await loadPulling({ db, id, scope })
  if (!webhook.isActived)
    throw new Problem('webhook_inactive', 'The webhook is inactive: its deliveries wait. Activate it, then pull.')
  return webhook
}

/** A webhook that pulls, active or not. Throws 404, and 409 `conflict` for one that does not pull. */
export async function loadPulling(
  { db, id, scope }: Pick<PullRequest, 'db' | 'id' | 'scope'>,
  options: { lock?: boolean } = {},
): Promise<WebhookRecord> {
  const load = (at: Database, of: string) => loadWebhook(at, of, options)
  const webhook = await loadWithin('webhook', { db, params: { id }, scope }, load)
  if (webhook.mode !== 'pull')
    throw new Problem(
      'conflict',
      'The webhook has the mode push: its deliveries are posted. Create one with mode pull.',
    )
  return webhook
}

/** Backlog of such a webhook. Throws alike. */
export async function loadBacklog(
  { db, params, scope }: { db: Database; params: { id: string }; scope: PermissionScope },
  now: Date,
): Promise<Backlog> {
  const webhook = await loadPulling({ db, id: params.id, scope })
  return readBacklog(db, { webhook: webhook.id, now })
}

/** A secret that does not open rolls the leases back. */
function lease(
  deps: PullDeps,
  { db, max, leaseSeconds }: Pick<PullRequest, 'db' | 'max' | 'leaseSeconds'>,
  webhook: WebhookRecord,
): Promise<LeasedDelivery[]> {
  const now = new Date(deps.clock.now())
  const leasedUntil = new Date(now.getTime() + leaseSeconds * 1_000)
  return inTransaction(db, async (tx) => {
    const claimed = await leaseDue(tx, { webhook: webhook.id, now, leasedUntil, max })
    return claimed.map((row) => sign(deps, row, { now, leasedUntil }))
  })
}

function sign(
  { secrets, signingKeys, userAgent }: Pick<PullDeps, 'secrets' | 'signingKeys' | 'userAgent'>,
  { id, fence, attempt, webhook, event }: ClaimedDispatch,
  { now, leasedUntil }: { now: Date; leasedUntil: Date },
): LeasedDelivery {
  const secret = openSealed(secrets, webhook.id, webhook.secretEncrypted)
  const signingKey = openSealed(signingKeys, webhook.id, webhook.signingKeyEncrypted)
  if (secret === undefined || secret === 'unreadable' || signingKey === 'unreadable')
    throw new Problem('conflict', 'The stored secret of the webhook cannot be read. Rotate it, then pull.')
  const body = buildEnvelope({ event, attempt })
  const headers = buildDeliveryHeaders({
    userAgent,
    secret,
    signingKey,
    eventId: event.id,
    eventType: event.type,
    deliveryId: id,
    attempt,
    timestampSeconds: Math.floor(now.getTime() / 1_000),
    body,
  })
  return { id, receipt: `${id}:${fence}`, attempt, leaseUntil: leasedUntil, headers, body }
}
