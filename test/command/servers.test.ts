import { expect, test } from 'vitest'
import { openDatabase } from '../../src/postgres/statement/database.ts'
import { TEST_METRICS_TOKEN } from '../harness/app/test-secrets.ts'
import { listPresentServers } from '../harness/database/servers.ts'
import { countSeen, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'

const servers = await listPresentServers()

test('this machine has at least one server', () => {
  expect(servers.map(({ name }) => name)).toContain('the embedded PostgreSQL')
})

test.for(servers)('on $name: from an empty database to a signed delivery, a restart and a retry', async ({ start }) => {
  await using server = await start()
  const { connectionString } = server
  await using opened = openOn(connectionString)
  await using fixture = await openDeliveryFixture(opened)
  const receiver = await fixture.receive()
  const first = await fixture.startLocal()
  await fixture.subscribe(first, receiver)
  receiver.behaveNext({ kind: 'status', status: 503 })
  const contract = await fixture.change(first)
  await fixture.waitForLedger(1, ['retrying'])
  await first.stop()

  const second = await fixture.startLocal()
  const read = await second.call('GET', `/api/v3/contract/contract/${contract}`)
  expect(read).toMatchObject({ status: 200, body: { data: { document_id: contract } } })
  await fixture.letRetriesComeDue()
  const [row] = await fixture.waitForLedger(1, ['success'])
  expect(row!.log.map((line) => line.status_code)).toEqual([503, 200])
  expect(countSeen(receiver).get(row!.id)).toEqual([1, 2])
  const dispatch = await second.call('GET', `/api/v3/webhook/dispatch/${row!.id}`)
  expect(dispatch).toMatchObject({ status: 200, body: { data: { status: 'success', attempts: 2 } } })
  expect((await second.call('GET', '/api/v3/webhook/dashboard/summary')).status).toBe(200)
  const headers = { authorization: `Bearer ${TEST_METRICS_TOKEN}` }
  expect((await fetch(`${second.url}/metrics`, { headers })).status).toBe(200)
})

/** A pool on a separate server, closed last. */
function openOn(connectionString: string) {
  const opened = openDatabase({ connectionString, size: 4, applicationName: 'signalbox test', onError: () => {} })
  return { ...opened, connectionString, [Symbol.asyncDispose]: () => opened.close() }
}
