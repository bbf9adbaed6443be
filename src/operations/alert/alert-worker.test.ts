import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { startReceiver } from '../../../test/harness/fakes/receiver.ts'
import { openProvisioning, signAgain } from '../../../test/harness/provisioning/provisioning-service.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildIdMaker } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import type { IncidentCheck } from '../../delivery/incident/alert.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { type AlertWorkerDeps, buildAlertWorker } from './alert-worker.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const HOUR_MS = 3_600_000

test('a dead letter posts one signed alert, however many follow, and the next success of the target its end', async () => {
  await using alerts = await startReceiver()
  const env = { ALERT_WEBHOOK_URL: `${alerts.origin}/alerts`, ALERT_WEBHOOK_SECRET: SECRET }
  await using receiver = await startReceiver()
  await using fixture = await openProvisioning({
    receiver,
    env: { ...env, WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}` },
  })
  const { id } = await fixture.makeTarget()
  receiver.behave({ kind: 'status', status: 500 })
  await fixture.makeUser()
  await fixture.makeUser()
  alerts.behaveNext({ kind: 'status', status: 503 })
  for (let n = 0; n < 12; n += 1) await fixture.pass(HOUR_MS)
  const bodies = () => alerts.requests.map(({ body }) => JSON.parse(body.toString()))
  // The first POST was refused and made again.
  expect(bodies().map(({ status }) => status)).toEqual(['firing', 'firing'])
  expect(bodies()[1]).toEqual({
    id: bodies()[0].id,
    incident: 'provisioning-dead-letter',
    subject: id,
    status: 'firing',
    since: expect.any(String),
    resolved_at: null,
    summary: expect.stringContaining(id),
    url: expect.stringMatching(new RegExp(`^http.*/api/v3/provisioning/target/${id}$`)),
  })
  const [first] = alerts.requests
  const signature = first?.headers['x-service-signature'] ?? ''
  expect(signature).toBe(signAgain(SECRET, signature, first?.body.toString() ?? ''))
  receiver.behave({ kind: 'status', status: 200 })
  await fixture.makeUser()
  await fixture.pass(HOUR_MS)
  expect(bodies().map(({ status }) => status)).toEqual(['firing', 'firing', 'resolved'])
  receiver.behave({ kind: 'status', status: 500 })
  await fixture.makeUser()
  for (let n = 0; n < 12; n += 1) await fixture.pass(HOUR_MS)
  expect(bodies().at(-1)).toMatchObject({ status: 'firing' })
  expect(bodies().at(-1).id).not.toBe(bodies()[0].id)
})

test('without ALERT_WEBHOOK_URL nothing is posted, and the incident is kept', async () => {
  await using fixture = await openProvisioning()
  fixture.receiver.behave({ kind: 'status', status: 500 })
  await fixture.makeTarget()
  await fixture.makeUser()
  for (let n = 0; n < 12; n += 1) await fixture.pass(HOUR_MS)
  const { rows } = await fixture.t.database.pool.query('select firing_posted_at, attempts from alert_incident')
  expect(rows).toEqual([{ firing_posted_at: null, attempts: 0 }])
})

const failing = (error: Error): IncidentCheck => ({ incident: 'first', check: () => Promise.reject(error) })
const begun = { incident: 'second', subject: 'one', summary: 'It is so.', url: null }
const beginning: IncidentCheck = { incident: 'second', check: async () => ({ begun: [begun], ended: [] }) }

/** A worker on a database, with a manual clock, and the lines that it logs. */
function buildWorker(db: Database, given: Pick<AlertWorkerDeps, 'checks'> & Partial<AlertWorkerDeps>) {
  const lines: { msg: string; incident?: string }[] = []
  const clock = buildManualClock()
  const worker = buildAlertWorker({
    ...{ db, clock, ids: buildIdMaker(clock, systemRandom) },
    logger: pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) }),
    fetch: () => Promise.reject(new Error('nothing is posted')),
    ...{ url: undefined, secret: undefined, baseUrl: () => '', userAgent: 'test' },
    ...given,
  })
  return { worker, clock, lines }
}

test('a check that fails is logged with its incident and keeps no other from being made, unless the database is away', async () => {
  await using database = await createTestDatabase()
  const listIncidents = async () => (await database.pool.query('select incident from alert_incident')).rows
  const gone = Object.assign(new Error('gone'), { code: 'ECONNREFUSED' })
  const away = buildWorker(database.db, { checks: [failing(gone), beginning] })
  await expect(away.worker.check()).rejects.toThrow('gone')
  expect([await listIncidents(), away.lines]).toEqual([[], []])
  const { worker, lines } = buildWorker(database.db, { checks: [failing(new Error('a fault')), beginning] })
  await worker.check()
  expect(await listIncidents()).toEqual([{ incident: 'second' }])
  expect(lines).toMatchObject([{ msg: expect.stringContaining('docs/operations.md, alerts'), incident: 'first' }])
})

test('a stop leaves alerts to other processes at once, and counts only the one that is being posted', async () => {
  await using database = await createTestDatabase()
  const posting = Promise.withResolvers<void>()
  const fetch: AlertWorkerDeps['fetch'] = (_url, { signal }) => {
    posting.resolve()
    if (signal?.aborted) return Promise.reject(new Error('aborted'))
    return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted'))))
  }
  const url = 'https://alerts.example.test/'
  const checks = ['one', 'two', 'three'].map((subject): IncidentCheck => {
    return { incident: 'second', check: async () => ({ begun: [{ ...begun, subject }], ended: [] }) }
  })
  const { worker, clock, lines } = buildWorker(database.db, { checks, fetch, url })
  await worker.check()
  const draining = worker.drain()
  await posting.promise
  worker.stop()
  await draining
  const { rows } = await database.pool.query('select due_at, attempts from alert_incident order by attempts')
  const dueAt = new Date(clock.now())
  expect(rows).toEqual([0, 0, 1].map((attempts) => ({ due_at: dueAt, attempts })))
  expect(lines).toEqual([])
})
