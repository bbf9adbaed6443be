import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildLedger } from '../../../test/harness/delivery/ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { WebhookId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { AUTO_DISABLE_REASON } from './failure-count.ts'
import { listDisabled, listFailing } from './incident.store.ts'
import { listWebhookIncidents, WEBHOOK_INCIDENT_CHECKS } from './incident.ts'
import type { OutcomeDecision, RecordedAttempt } from './outcome.ts'

/** A webhook that works, one that fails, and a deleted one that failed. */
async function addWebhooks(db: Database) {
  const ledger = buildLedger(db, buildManualClock())
  const webhooks = [
    await ledger.addWebhook(),
    await ledger.addWebhook({ consecutiveFailures: 1 }),
    await ledger.addWebhook({ consecutiveFailures: 1, isDeleted: true }),
  ] as const
  return { ledger, webhooks }
}

test('of the webhooks asked for, those that live and fail, and those that the service has disabled', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const { ledger, webhooks } = await addWebhooks(db)
  const [sound, failing, gone] = webhooks
  await ledger.addWebhook({ consecutiveFailures: 1 })
  const asked = [sound, failing, gone]
  expect(await listFailing(db, { ids: asked })).toEqual([failing])
  const disable = async (id: string, reason: string, isActived: boolean) => {
    const columns = { is_actived: isActived, disabled_reason: reason }
    await db.updateTable('webhook').set(columns).where('document_id', '=', id).execute()
  }
  await disable(failing, AUTO_DISABLE_REASON, false)
  await disable(gone, AUTO_DISABLE_REASON, false)
  await disable(sound, 'other', false)
  expect(await listDisabled(db, asked)).toEqual([failing])
  await disable(sound, AUTO_DISABLE_REASON, true)
  expect(await listDisabled(db, asked)).toEqual([failing])
})

test('an incident of a webhook that fails ends when it succeeds or is deleted, and goes on for the others', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const { ledger, webhooks } = await addWebhooks(db)
  const [sound, failing, gone] = webhooks
  const { check } = WEBHOOK_INCIDENT_CHECKS.find(({ incident }) => incident === 'deliveries-exhausted')!
  const since = ledger.now()
  const lasting = [sound, failing, gone].map((subject) => ({ subject, since }))
  expect(await check({ db, now: since, lasting })).toEqual({ begun: [], ended: [sound, gone] })
  expect(await check({ db, now: since, lasting: [] })).toEqual({ begun: [], ended: [] })
})

const WEBHOOK = '0199387d-3a00-7000-8000-000000000001' as WebhookId

function recorded(decision: Pick<OutcomeDecision, 'status' | 'failureCount'>): RecordedAttempt {
  return {
    attempt: { webhook: WEBHOOK } as RecordedAttempt['attempt'],
    decision: { nextAttemptAt: null, lastError: 'timeout', ...decision },
    isRecorded: true,
  }
}

test('of recorded attempts only the last POST of a schedule begins an incident, one for each webhook', () => {
  const exhausted = recorded({ status: 'exhausted', failureCount: 'add' })
  expect(listWebhookIncidents([exhausted, exhausted], [])).toEqual([
    {
      incident: 'deliveries-exhausted',
      subject: WEBHOOK,
      summary: `A delivery to the webhook ${WEBHOOK} has failed with all five POSTs.`,
      url: `/api/v3/webhook/webhook/${WEBHOOK}`,
    },
  ])
  const others = [
    // A replay, a redirect, and a POST that is made again.
    recorded({ status: 'exhausted', failureCount: 'keep' }),
    recorded({ status: 'failed', failureCount: 'add' }),
    recorded({ status: 'retrying', failureCount: 'keep' }),
  ]
  expect(listWebhookIncidents(others, [])).toEqual([])
})

test('of the notices on a webhook only the one that it was disabled begins an incident', () => {
  const notice = (event: string) => ({ webhook: WEBHOOK, event, consecutiveFailures: 20 })
  expect(listWebhookIncidents([], [notice('webhook.failing')])).toEqual([])
  expect(listWebhookIncidents([], [notice('webhook.auto-disable')])).toEqual([
    {
      incident: 'webhook-disabled',
      subject: WEBHOOK,
      summary: `The webhook ${WEBHOOK} was disabled after 20 failed deliveries in a row.`,
      url: `/api/v3/webhook/webhook/${WEBHOOK}`,
    },
  ])
})
