import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { whileHeld } from '../../../test/harness/plan/lock-waits.ts'
import { buildProvisioningLedger } from '../../../test/harness/provisioning/provisioning-ledger.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { ClaimRequest } from '../../delivery/policy.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { claimDeliveries, findNextDeliveryAt } from '../delivery/claim.store.ts'
import { claimJob, insertJob, provisioningJobs } from '../job/job.store.ts'
import { lockForReplay } from '../ledger/delivery.store.ts'
import {
  changeLockedTarget,
  findTarget,
  hasProvisioningWork,
  listStaleTargetSecrets,
  selectTargets,
  type TargetId,
  type TargetRecord,
} from './target.store.ts'

const MINUTE_MS = 60_000

async function openTargets() {
  const database = await createTestDatabase()
  const clock = buildManualClock()
  const { db } = database
  const ledger = buildProvisioningLedger(db, clock)
  const claim = (change: Partial<ClaimRequest> = {}) =>
    claimDeliveries(db, {
      ...{ workerId: 'worker-a', now: ledger.now(), fastSlots: 10, slowSlots: 2, slowGroups: [], lateGroups: [] },
      ...{ inFlight: new Map(), perGroup: 10, hasPeers: false, ...change },
    })
  const change = (id: TargetId, columns: { deleted_at?: Date | null; is_actived?: boolean }) =>
    db.updateTable('provisioning_target').set(columns).where('document_id', '=', id).execute()
  const startJob = (target: TargetId) =>
    insertJob(db, { id: ledger.ids.next<'provisioning job'>(), target, kind: 'sync', by: null, now: ledger.now() })
  return {
    database,
    db,
    clock,
    ledger,
    claim,
    change,
    startJob,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

test('a target that is locked stays as it was read until the transaction ends', async () => {
  await using t = await openTargets()
  const id = await t.ledger.addTarget()
  const changed = await whileHeld(
    t.db,
    (tx) => findTarget(tx, id, { lock: true }),
    () => t.change(id, { is_actived: false }),
  )
  expect(changed[0]?.numUpdatedRows).toBe(1n)
})

test('a target that is only read keeps nobody from changing it', async () => {
  await using t = await openTargets()
  const id = await t.ledger.addTarget()
  await inTransaction(t.db, async (tx) => {
    expect(await findTarget(tx, id)).toMatchObject({ id, isActived: true })
    await t.change(id, { is_actived: false })
  })
})

test('a removed target is found by no read, locked or not, and is in no list', async () => {
  await using t = await openTargets()
  const [id, kept] = [await t.ledger.addTarget(), await t.ledger.addTarget()]
  expect(await hasProvisioningWork(t.db)).toBe(true)
  await t.change(id, { deleted_at: t.ledger.now() })
  expect([await findTarget(t.db, id), await findTarget(t.db, id, { lock: true })]).toEqual([undefined, undefined])
  expect((await selectTargets(t.db).execute()).map(({ id }) => id)).toEqual([kept])
  await t.change(kept, { deleted_at: t.ledger.now() })
  expect(await hasProvisioningWork(t.db)).toBe(false)
})

test('a change writes what it names, of that target alone, and a new URL starts another generation', async () => {
  await using t = await openTargets()
  const [id, other] = [await t.ledger.addTarget(), await t.ledger.addTarget()]
  const by = await t.ledger.addUser()
  const read = async (id: TargetId) =>
    await t.db.selectFrom('provisioning_target').selectAll().where('document_id', '=', id).executeTakeFirstOrThrow()
  const [before, untouched] = [await read(id), await read(other)]
  const target = (await findTarget(t.db, id)) as TargetRecord
  t.clock.advance(MINUTE_MS)
  const now = t.ledger.now()
  const text = { url: 'https://other.example.com/users', name: 'new', description: 'why' }
  const changed = await changeLockedTarget(
    t.db,
    target,
    { ...text, isActived: false, secretEncrypted: 'sealed anew' },
    { by, now },
  )
  const columns = { is_actived: false, secret_encrypted: 'sealed anew', updated_by: by, updated_at: now }
  expect(await read(id)).toEqual({ ...before, ...text, ...columns, generation: before.generation + 1 })
  expect(changed).toEqual(await findTarget(t.db, id))
  await changeLockedTarget(t.db, changed, { deletedAt: now }, { by, now })
  expect(await read(id)).toMatchObject({ ...text, deleted_at: now, generation: before.generation + 1 })
  expect(await read(other)).toEqual(untouched)
})

test('a secret that is sealed anew cannot be replaced meanwhile', async () => {
  await using t = await openTargets()
  const ids = [await t.ledger.addTarget(), await t.ledger.addTarget(), await t.ledger.addTarget()].sort()
  const stale = (after: string | null, limit = 10, prefix = 'v2.') =>
    listStaleTargetSecrets(t.db, { prefix, after, limit })
  const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id)
  expect(idsOf(await stale(null))).toEqual(ids)
  expect(idsOf(await stale(ids[0]!))).toEqual(ids.slice(1))
  expect(idsOf(await stale(null, 2))).toEqual(ids.slice(0, 2))
  expect(await stale(null, 10, 'not')).toEqual([])
  await whileHeld(
    t.db,
    (tx) => listStaleTargetSecrets(tx, { prefix: 'v2.', after: null, limit: 1 }),
    () => t.change(ids[0]!, { is_actived: false }),
  )
})

test('nothing is claimed for a target that was removed, rests or is blocked, nor is it waited for', async () => {
  await using t = await openTargets()
  const id = await t.ledger.addTarget()
  await t.ledger.queueNewUsers(id, 1)
  const room = { fastSlots: 0, slowSlots: 0, inFlight: new Map([[id as string, 10]]), perGroup: 10 }
  const blocked = { ...room, slowGroups: [], lateGroups: [], hasPeers: false }
  for (const columns of [{ deleted_at: t.ledger.now() }, { is_actived: false }]) {
    await t.change(id, columns)
    expect([await t.claim(), await findNextDeliveryAt(t.db)]).toEqual([[], null])
    await t.change(id, { deleted_at: null, is_actived: true })
  }
  expect([await findNextDeliveryAt(t.db), await findNextDeliveryAt(t.db, blocked)]).toEqual([t.ledger.now(), null])
  expect(await t.claim({ inFlight: blocked.inFlight })).toEqual([])
  expect(await t.claim()).toMatchObject([{ target: { id } }])
})

test('a delivery of a target that was removed or rests is not replayed', async () => {
  await using t = await openTargets()
  const id = await t.ledger.addTarget()
  const [delivery] = await t.ledger.queueNewUsers(id, 1)
  const isActive = async () => (await lockForReplay(t.db, { id: delivery! }))?.facts.isTargetActive
  expect(await isActive()).toBe(true)
  await t.change(id, { is_actived: false })
  expect(await isActive()).toBe(false)
  await t.change(id, { is_actived: true, deleted_at: t.ledger.now() })
  expect(await isActive()).toBe(false)
})

test('a job begins for a living, active target alone, once until it ends, and waits for who changes the target', async () => {
  await using t = await openTargets()
  const [removed, resting, id] = [await t.ledger.addTarget(), await t.ledger.addTarget(), await t.ledger.addTarget()]
  await t.change(removed, { deleted_at: t.ledger.now() })
  await t.change(resting, { is_actived: false })
  expect([await t.startJob(removed), await t.startJob(resting)]).toEqual([undefined, undefined])
  const deleted = await whileHeld(
    t.db,
    (tx) =>
      tx.updateTable('provisioning_target').set({ deleted_at: t.ledger.now() }).where('document_id', '=', id).execute(),
    () => t.startJob(id),
  )
  expect(deleted).toBeUndefined()
  await t.change(id, { deleted_at: null })
  const job = await t.startJob(id)
  for (const status of ['running', 'paused', 'failed'] as const) {
    await provisioningJobs.change(t.db, job!.id, { status }, t.ledger.now())
    expect(await t.startJob(id)).toBeUndefined()
  }
  await provisioningJobs.change(t.db, job!.id, { status: 'cancelled' }, t.ledger.now())
  expect(await t.startJob(id)).toMatchObject({ target: id, status: 'running', endedAt: null })
})

test('while a job begins, its target is neither changed nor removed', async () => {
  await using t = await openTargets()
  const id = await t.ledger.addTarget()
  const row = { target: id, kind: 'sync' as const, by: null, now: t.ledger.now() }
  const begin = (tx: Database) => insertJob(tx, { ...row, id: t.ledger.ids.next<'provisioning job'>() })
  await whileHeld(t.db, begin, () => t.change(id, { deleted_at: t.ledger.now() }))
})

test('a running job rests while its target is removed or inactive', async () => {
  await using t = await openTargets()
  const id = await t.ledger.addTarget()
  const job = await t.startJob(id)
  const mayRun = async () => (await claimJob(t.db, { id: job!.id }))?.mayRun
  expect(await mayRun()).toBe(true)
  await t.change(id, { is_actived: false })
  expect(await mayRun()).toBe(false)
  await t.change(id, { is_actived: true, deleted_at: t.ledger.now() })
  expect(await mayRun()).toBe(false)
})

test('a job that is moved has the time at which it ended, none while it goes on, and begins without failures', async () => {
  await using t = await openTargets()
  const [id, other] = [await t.ledger.addTarget(), await t.ledger.addTarget()]
  const [job, untouched] = [(await t.startJob(id))!, await t.startJob(other)]
  const failed = { status: 'failed', failures: 5, lastError: 'why', endedAt: t.ledger.now() } as const
  expect(await provisioningJobs.change(t.db, job.id, failed, t.ledger.now())).toEqual({ ...job, ...failed })
  t.clock.advance(MINUTE_MS)
  const now = t.ledger.now()
  const move = (from: 'failed' | 'running', to: 'running' | 'cancelled', endedAt: Date | null) =>
    provisioningJobs.move(t.db, job.id, { from: [from], to, endedAt, now })
  expect(await move('running', 'cancelled', now)).toBeUndefined()
  const resumed = { status: 'running', failures: 0, lastError: null, endedAt: null, updatedAt: now }
  expect(await move('failed', 'running', null)).toEqual({ ...job, ...resumed })
  expect(await move('running', 'cancelled', now)).toEqual({ ...job, status: 'cancelled', endedAt: now, updatedAt: now })
  const progress = { processed: 1, queued: 1, total: 2 }
  const lastUser = await t.ledger.addUser()
  const counted = { ...untouched, ...progress, updatedAt: now }
  expect(await provisioningJobs.change(t.db, untouched!.id, { ...progress, lastUser }, now)).toEqual(counted)
  expect(await claimJob(t.db, { id: untouched!.id })).toMatchObject({ job: counted, lastUser })
})
