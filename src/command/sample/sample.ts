import type { UserId } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import { type Random, systemRandom } from '../../base/random.ts'
import { addSums } from '../../operations/activity/activity-sum.store.ts'
import { createSecret } from '../../outbound/signature.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { buildApps } from './apps.ts'
import { buildAudit } from './audit.ts'
import { deliverEvents, noteStates } from './deliveries.ts'
import { buildSampleId } from './dice.ts'
import { buildEventTypes } from './event-types.ts'
import { buildEventRows, buildEvents } from './events.ts'
import { buildProvisioning } from './provisioning.ts'
import { buildRealtime, listConnections } from './realtime.ts'
import {
  countProvisioned,
  hasSample,
  insertSampleRows,
  lockSample,
  moveToSink,
  readSampleFacts,
  recordSampleOutcomes,
  recountActivity,
  switchProvisioningOff,
} from './sample.store.ts'
import { buildSamplePlan, type SampleInput, type SampleRows } from './sample-plan.ts'
import { buildUsers } from './users.ts'
import { buildWebhooks } from './webhooks.ts'

/** The seed of `--sample`: each start makes the same sample. */
const SEED = 22

/** Maximum numbers of accounts and webhooks of a sample, for the search of their ids. */
const MOST = { accounts: 12, webhooks: 60 }

export interface SampleOptions {
  db: Database
  keyring: Keyring
  now: Date
  sinkUrl: string
  administrator: UserId
  seed?: number
  /** The source of secrets and tokens, which no seed repeats. */
  random?: Random
}

/** Result of a fill: numbers of rows written. */
export interface SampleFill {
  /** Rows written; 0 where the sample was there. */
  rows: number
  accounts: number
  webhooks: number
  events: number
  deliveries: number
}

/**
 * Fills the database with a month of traffic, in one transaction: accounts with members, users, apps, webhooks whose
 * receivers fail in each way, events with their deliveries, audit entries, provisioning and realtime messages. Adds nothing
 * where any of it was added before; then it only moves webhooks to the receiver of this start.
 */
export async function fillSample({
  seed = SEED,
  random = systemRandom,
  ...options
}: SampleOptions): Promise<SampleFill> {
  const { db, keyring, sinkUrl, administrator, now } = options
  const idsOf = (kind: string, count: number) => Array.from({ length: count }, (_, n) => buildSampleId(seed, kind, n))
  return inTransaction(db, async (tx) => {
    await lockSample(tx)
    if (await hasSample(tx, idsOf('account', MOST.accounts))) {
      const path = new URL(sinkUrl).pathname
      await moveToSink(tx, { webhooks: idsOf('webhook', MOST.webhooks), sinkUrl, path, administrator, now })
      return { rows: 0, accounts: 0, webhooks: 0, events: 0, deliveries: 0 }
    }
    const facts = await readSampleFacts(tx)
    const seal = (context: string) => keyring.seal(createSecret(random), context)
    const rows = buildSample({ ...facts, administrator, seed, now, sinkUrl, seal, random })
    await switchProvisioningOff(tx)
    const written = await insertSampleRows(tx, rows)
    await countProvisioned(tx, { targets: (rows.provisioning_target ?? []).map((item) => item.document_id) })
    await recountActivity(tx, {})
    await addSums(tx, { kind: 'connection', minutes: listConnections(now), until: now })
    await recordSampleOutcomes(tx, { webhooks: (rows.webhook ?? []).map((item) => item.document_id) })
    const count = (...tables: (keyof SampleRows)[]) => tables.reduce((sum, item) => sum + (rows[item]?.length ?? 0), 0)
    return {
      ...{ rows: written, accounts: count('account'), webhooks: count('webhook'), events: count('event_occurrence') },
      deliveries: count('webhook_dispatch_ended', 'webhook_dispatch_open'),
    }
  })
}

/** Builds all rows, in the order in which they refer to each other. The same input gives the same rows. */
export function buildSample(input: SampleInput): SampleRows {
  const plan = buildSamplePlan(input)
  const { rows: users, accounts } = buildUsers(plan)
  const everybody = accounts.flatMap(({ members }) => members)
  const types = buildEventTypes(plan)
  const { rows: clients, apps, decisions } = buildApps(plan, everybody)
  const { rows: subscribers, webhooks } = buildWebhooks(plan, { accounts, types: types.ids })
  const { rows: contracts, events } = buildEvents(plan, accounts)
  const { rows: ledger, histories, noticed } = deliverEvents(plan, { webhooks, events })
  noteStates(subscribers, histories)
  const recorded = [...events, ...noticed].sort((a, b) => a.at.getTime() - b.at.getTime())
  return {
    ...{ ...users, ...types.rows, ...clients, ...subscribers, ...contracts },
    ...{ ...buildEventRows(plan, recorded), ...ledger, ...buildProvisioning(plan, everybody) },
    ...{
      ...buildRealtime(plan, { events, accounts }),
      ...buildAudit(plan, { accounts, events, webhooks, apps, decisions }),
    },
  }
}
