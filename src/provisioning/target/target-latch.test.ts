import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildManualClock, type ManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { buildTargetLatch, LATCH_POLL_MS } from './target-latch.ts'

const database = await openForFile(createTestDatabase())

/** A latch, and how often it asked the database. */
function openGate() {
  const manual = buildManualClock()
  const slept = { times: 0 }
  const clock: ManualClock = {
    ...manual,
    sleep: (ms, signal) => {
      slept.times += 1
      return manual.sleep(ms, signal)
    },
  }
  const asked = { times: 0 }
  const db = new Proxy(database.db, {
    get: (target, name) => {
      if (name === 'executeQuery') asked.times += 1
      const value = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  }) as Database
  return { clock, asked, slept, latch: buildTargetLatch({ db, clock }) }
}

/** The state of a pass. */
function watch(passing: Promise<boolean>) {
  const seen = { hasWaited: undefined as boolean | undefined }
  void passing.then((hasWaited) => {
    seen.hasWaited = hasWaited
  })
  return seen
}

const addTarget = async () => {
  const { rows } = await database.pool.query(
    `insert into provisioning_target (document_id, url, secret_encrypted, created_at, updated_at)
     values (gen_random_uuid(), 'https://a.test', 'x', now(), now()) returning document_id`,
  )
  return rows[0].document_id as string
}
const removeTargets = () => database.pool.query('update provisioning_target set deleted_at = now()')

test('holds the workers while there is no target, asks once in 30 s, and lets them pass after the note of the first one', async () => {
  const { clock, asked, slept, latch } = openGate()
  const seen = watch(latch.pass(new AbortController().signal))
  await waitFor('the first rest', () => slept.times === 1)
  clock.advance(LATCH_POLL_MS - 1)
  await new Promise(setImmediate)
  expect([asked.times, seen.hasWaited]).toEqual([1, undefined])
  clock.advance(1)
  await waitFor('the second rest', () => slept.times === 2)
  expect(asked.times).toBe(2)
  await addTarget()
  latch.invalidate()
  await waitFor('the pass', () => seen.hasWaited === true)
  expect(await latch.pass(new AbortController().signal)).toBe(false)
  expect(asked.times).toBe(3)
})

test('closes after the note that the last target is gone, unless a delivery of it has not ended', async () => {
  const { latch } = openGate()
  const target = await addTarget()
  expect(await latch.pass(new AbortController().signal)).toBe(false)
  await removeTargets()
  const stream = `insert into provisioning_stream (target, user_id, position, waiting, due_at)
    values ($1, gen_random_uuid(), 1, 1, now())`
  await database.pool.query(stream, [target])
  latch.invalidate()
  expect(await latch.pass(new AbortController().signal)).toBe(false)
  await database.pool.query('delete from provisioning_stream')
  latch.invalidate()
  const stopping = new AbortController()
  const seen = watch(latch.pass(stopping.signal))
  stopping.abort()
  await waitFor('the end at the stop', () => seen.hasWaited !== undefined)
})

test('is noted by the database when a target is added and when one is deleted', async () => {
  const client = await database.pool.connect()
  try {
    const notes: string[] = []
    client.on('notification', ({ payload }) => notes.push(payload ?? ''))
    await client.query('listen signalbox_change')
    await addTarget()
    await waitFor('the note of an addition', () => notes.filter((invalidate) => invalidate === 't').length === 1)
    await removeTargets()
    await waitFor('the note of a removal', () => notes.filter((invalidate) => invalidate === 't').length === 2)
  } finally {
    client.release(true)
  }
})
