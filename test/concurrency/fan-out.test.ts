import { expect, test } from 'vitest'
import { buildKeyring } from '../../src/base/keyring.ts'
import { systemRandom } from '../../src/base/random.ts'
import { createSecret } from '../../src/outbound/signature.ts'
import { secretContextOf } from '../../src/webhook/registry/webhook.ts'
import { TEST_SECRETS } from '../harness/app/test-secrets.ts'
import { countSeen, type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import type { Receiver } from '../harness/fakes/receiver.ts'

/** More than one statement routes an event to. */
const CROWD = 1_100

/** Makes global webhooks on the receiver that subscribe to `contract.create`. */
async function addCrowd({ database }: DeliveryFixture, receiver: Receiver): Promise<void> {
  const keyring = buildKeyring(TEST_SECRETS.secretKey, systemRandom)
  const { rows } = await database.pool.query<{ id: string }>(
    `insert into webhook (document_id, url, is_global, created_at, updated_at)
     select gen_random_uuid(), $1, true, now(), now() from generate_series(1, $2::int) returning document_id as id`,
    [`${receiver.origin}/hook`, CROWD],
  )
  const sealed = rows.map(({ id }) => keyring.seal(createSecret(systemRandom), secretContextOf(id)))
  await database.pool.query(
    `with subscribed as (
       insert into webhook_event (document_id, webhook, event, created_at, updated_at)
       select gen_random_uuid(), w.id, e.document_id, now(), now()
       from unnest($1::uuid[]) as w (id), event e where e.internal = 'contract.create'
     )
     update webhook w set secret_encrypted = x.sealed
     from unnest($1::uuid[], $2::text[]) as x (id, sealed) where w.document_id = x.id`,
    [rows.map(({ id }) => id), sealed],
  )
}

test(`kill -9 right after the first POST of an event for ${CROWD} webhooks: each of them has one row and its POST`, async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  const api = await fixture.startLocal({ roles: 'api' })
  await addCrowd(fixture, receiver)
  // Small parts, so that both processes write some.
  const env = { WEBHOOK_CONCURRENCY: '16' }
  const doomed = await fixture.start({ roles: 'dispatcher', env })
  await fixture.startLocal({ roles: 'dispatcher', env })
  await fixture.change(api)
  await receiver.waitFor(1)
  await doomed.kill()
  const killed = await fixture.readLedger()
  const heldByDoomed = killed.filter((row) => row.leaseOwner?.includes(`:${doomed.pid}:`)).map((row) => row.id)

  const rows = await fixture.waitForLedger(CROWD, ['success'], 120_000)
  expect(rows).toHaveLength(CROWD)
  expect(new Set(rows.map((row) => row.webhook)).size).toBe(CROWD)
  const seen = countSeen(receiver)
  expect(rows.filter((row) => !seen.has(row.id))).toEqual([])
  const repeated = rows.filter((row) => row.attempts > 1).map((row) => row.id)
  expect(heldByDoomed).toEqual(expect.arrayContaining(repeated))
  expect(Math.max(...rows.map((row) => row.attempts))).toBeLessThanOrEqual(2)
  const { rows: events } = await fixture.database.pool.query(
    `select routed_at is not null as is_routed from event_occurrence where event = 'contract.create'`,
  )
  expect(events).toEqual([{ is_routed: true }])
})
