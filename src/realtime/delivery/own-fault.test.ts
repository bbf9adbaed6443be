import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listArrivals, openRealtime, type RealtimeApp } from '../../../test/harness/app/realtime-app.ts'
import { buildDispatcher, type Dispatcher } from '../../delivery/dispatcher/dispatcher.ts'
import { buildWorkerLease } from '../../delivery/worker-lease.ts'
import { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import { NOTHING_SEEN, observe } from '../authorization/verdict.ts'
import { buildProviderClient, type ProviderClient } from '../provider/provider-client.ts'
import { buildPublisher } from '../provider/publisher.ts'
import { buildWatch } from '../watch/watch.ts'
import { buildRealtimePolicy } from './realtime-policy.ts'

const logger = pino({ level: 'silent' })

let fixture: RealtimeApp
/** Whether the process of these tests has descriptors. */
let hasDescriptors = true
let client: ProviderClient
let dispatcher: Dispatcher
const faults: OwnFault[] = []

beforeAll(async () => {
  fixture = await openRealtime()
  const { database, clock } = fixture.t
  const { db } = database
  const { provider } = fixture
  const app = { ...provider.app, cluster: 'test', origin: `http://127.0.0.1:${provider.port}` }
  const socket = { host: '127.0.0.1', port: provider.port, isTls: false }
  const real = buildProviderClient({ app: () => ({ ...app, socket }), clock })
  client = {
    send: async (request, options) =>
      hasDescriptors ? real.send(request, options) : { kind: 'own_fault', fault: new OwnFault('EMFILE') },
    close: () => real.close(),
  }
  const publisher = buildPublisher({ client, now: () => clock.now() })
  const workerId = 'worker-of-the-test'
  dispatcher = buildDispatcher({
    ...{ clock, logger, workerId, isEnabled: true },
    policy: buildRealtimePolicy({ db, clock, logger, publisher }),
    lease: buildWorkerLease({ db, clock, workerId, hasLock: () => true }),
    onOwnFault: (fault) => faults.push(fault),
  })
})
afterAll(async () => {
  await client?.close()
  await fixture?.[Symbol.asyncDispose]()
})

test('messages that this process could not send keep their attempts and their order, and are sent when it can', async () => {
  const account = await fixture.addAccount()
  await fixture.t.settle()
  fixture.provider.messages.length = 0
  const { rows: before } = await countRows()
  const ids = await fixture.emit(account, 25)
  await fixture.t.app.router.drain()
  hasDescriptors = false
  for (let step = 0; step < 20; step += 1) {
    await dispatcher.drain()
    fixture.t.clock.advance(30_000)
  }
  expect(faults.length).toBeGreaterThanOrEqual(20)
  const open = await fixture.t.database.pool.query(
    'select distinct attempts, last_error, lease_owner from realtime_message_open where account = $1',
    [account],
  )
  expect(open.rows).toEqual([{ attempts: 0, last_error: null, lease_owner: null }])
  expect((await countRows()).rows).toEqual(before)
  hasDescriptors = true
  fixture.t.clock.advance(30_000)
  await dispatcher.drain()
  expect(listArrivals(fixture.provider, account)).toEqual(ids)
})

/** The messages that came to an end. */
const countRows = () => fixture.t.database.pool.query('select status, count(*) from realtime_message_ended group by 1')

test('a probe that this process could not make leaves the verdict as it was', async () => {
  const { database, clock } = fixture.t
  hasDescriptors = true
  const seen: OwnFault[] = []
  const watch = buildWatch({
    ...{ db: database.db, clock, logger, workerId: 'watch-of-the-test', client, onRecovered: () => {} },
    onOwnFault: (fault) => seen.push(fault),
  })
  expect((await watch.probe()).status).toBe('operational')
  hasDescriptors = false
  for (let step = 0; step < 5; step += 1) expect((await watch.probe()).status).toBe('operational')
  expect(seen).toHaveLength(5)
  expect(watch.read().lastError).toBe(
    observe(NOTHING_SEEN, { kind: 'ok', body: {} }, { source: 'probe', now: new Date() }).facts.lastError,
  )
})
