import type { Clock } from '../../base/clock.ts'
import { type ApiClient, ApiError, type KeyedChange } from '../receiver/api-client.ts'
import { type History, keyOf } from './history.ts'
import type { WebhookDraft } from './plan.ts'
import { toLine } from './source/foreign.ts'
import type { Tenant } from './source/source.ts'

/** Maximum number of times that a change is sent. Its idempotency key prevents duplicates. */
const MAX_TRIES = 6

/** Wait before another try without `Retry-After`. */
const WAIT_MS = 1_000

/** Problems of this row alone, after which the run goes on. */
const OF_THE_ROW: ReadonlySet<string> = new Set([
  'malformed_request',
  'validation_failed',
  'not_found',
  'conflict',
  'idempotency_key_reused',
  'limit_reached',
])

export interface ApplyDeps {
  client: ApiClient
  clock: Clock
  history: History
  /** Name of the source, in every key. */
  source: string
}

/** A change that the service refused for this row, in the service's words. */
export class RowRefusal extends Error {
  readonly code: string

  constructor(error: ApiError) {
    super(error.message)
    this.name = 'RowRefusal'
    this.code = error.code ?? 'refused'
  }
}

/** The name of the account of a tenant: its own with the id of the source, since names of tenants repeat. Pure. */
export function nameAccount(source: string, { id, name }: Tenant): string {
  const mark = ` (${source} ${toLine(id, 80)})`
  return `${toLine(name, 200 - mark.length) ?? 'Imported'}${mark}`
}

/** Creates the account of a tenant, once over all runs. Throws a `RowRefusal`. */
export async function createAccount(deps: ApplyDeps, tenant: Tenant): Promise<Changed> {
  const body = { name: nameAccount(deps.source, tenant) }
  const key = keyOf(deps.source, 'account', [tenant.id])
  return changeOnce(deps, { method: 'POST', path: '/api/v3/identity/account', body, key })
}

interface NewWebhook {
  /** Of the tenant and the endpoint at the source. */
  ids: readonly string[]
  account: string
  draft: WebhookDraft
  isDisabled: boolean
}

/** Creates a webhook, once over all runs. Returns its id. A disabled one has no event types yet. Throws a `RowRefusal`. */
export async function createWebhook(deps: ApplyDeps, { ids, account, draft, isDisabled }: NewWebhook): Promise<string> {
  const { events, ...row } = draft
  const body = { ...row, account, ...(!isDisabled && { events }) }
  const key = keyOf(deps.source, isDisabled ? 'disabled' : 'webhook', ids)
  return (await changeOnce(deps, { method: 'POST', path: '/api/v3/webhook/webhook', body, key })).id
}

/** A webhook that an earlier run made for an endpoint. */
export interface MadeWebhook {
  webhook: string
  /** The steps that no run has made yet, of an endpoint that was disabled at its import. */
  openSteps: ('off' | 'events')[]
}

/** Finds the webhook that an earlier run made. */
export function findWebhook(
  { history, source }: Pick<ApplyDeps, 'history' | 'source'>,
  ids: readonly string[],
): MadeWebhook | undefined {
  const active = history.findTarget(keyOf(source, 'webhook', ids))
  if (active !== undefined) return { webhook: active, openSteps: [] }
  const webhook = history.findTarget(keyOf(source, 'disabled', ids))
  if (webhook === undefined) return undefined
  const isOpen = (step: 'off' | 'events') => !history.hasChanged(keyOf(source, step, ids), webhook)
  return { webhook, openSteps: (['off', 'events'] as const).filter(isOpen) }
}

/** Switches a webhook off before it has an event type, so that no event reaches it. Throws a `RowRefusal`. */
export async function switchOff(deps: ApplyDeps, ids: readonly string[], webhook: string): Promise<void> {
  const path = `/api/v3/webhook/webhook/${webhook}/active`
  await changeOnce(deps, { method: 'PATCH', path, body: { is_actived: false }, key: keyOf(deps.source, 'off', ids) })
}

/** Gives a webhook that is off its event types. Throws a `RowRefusal`. */
export async function subscribe(
  deps: ApplyDeps,
  ids: readonly string[],
  { webhook, events }: { webhook: string; events: readonly string[] },
): Promise<void> {
  const path = `/api/v3/webhook/webhook/${webhook}/events`
  await changeOnce(deps, { method: 'PUT', path, body: { events }, key: keyOf(deps.source, 'events', ids) })
}

interface Changed {
  id: string
  /** Whether an earlier run made the change: the history does not know the accounts of one that made no webhook. */
  isOfEarlierRun: boolean
}

/** Sends a change until it is answered for good. */
async function changeOnce({ client, clock }: ApplyDeps, change: KeyedChange): Promise<Changed> {
  for (let tries = 1; ; tries += 1) {
    try {
      const { data, isReplayed } = await client.callOnce<{ document_id: string }>(change)
      // A row that a later try finds may have been made by the first, whose answer was lost.
      return { id: data.document_id, isOfEarlierRun: isReplayed && tries === 1 }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.kind === 'refused' && OF_THE_ROW.has(error.code ?? '')) throw new RowRefusal(error)
      const isRunning = error.code === 'idempotency_in_progress'
      if ((error.kind === 'refused' && !isRunning) || tries === MAX_TRIES) throw error
      await clock.sleep(error.retryAfterMs ?? WAIT_MS * tries)
    }
  }
}
