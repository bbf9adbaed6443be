import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import { waitFor } from '../harness/run/wait.ts'

const PATH = '/api/v3/webhook/webhook'

async function makePulling(service: Pick<LocalService, 'call'>): Promise<string> {
  const body = { mode: 'pull', is_global: true, events: ['contract.create'] }
  const answer = await service.call('POST', PATH, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return answer.body.data.document_id
}

test('a pull that waits at one process is woken by a change at another, which a third one routes', async () => {
  await using fixture = await openDeliveryFixture()
  const [asked, changing] = [await fixture.startLocal({ roles: 'api' }), await fixture.startLocal({ roles: 'api' })]
  await fixture.startLocal({ roles: 'dispatcher' })
  const id = await makePulling(changing)
  const answer = asked.call('POST', `${PATH}/${id}/pull`, { wait_seconds: 30 })
  // The wait has begun when the process has answered a later request.
  await asked.call('GET', `${PATH}/${id}`)
  const startedAt = performance.now()
  await fixture.change(changing)
  const { body } = await answer
  expect(body.data.deliveries).toHaveLength(1)
  expect(performance.now() - startedAt).toBeLessThan(20_000)
})

test('a process that stops answers its waiting pulls at once, and leases nothing', async () => {
  await using fixture = await openDeliveryFixture()
  const [asked, other] = [await fixture.startLocal({ roles: 'api' }), await fixture.startLocal()]
  const id = await makePulling(other)
  const answer = asked.call('POST', `${PATH}/${id}/pull`, { wait_seconds: 30 })
  await asked.call('GET', `${PATH}/${id}`)
  await asked.stop()
  expect(await answer).toMatchObject({ status: 200, body: { data: { deliveries: [] } } })
  await fixture.change(other)
  const pulled = await other.call('POST', `${PATH}/${id}/pull`, { wait_seconds: 30 })
  expect(pulled.body.data.deliveries).toMatchObject([{ attempt: 1 }])
})

test('a client that closes its connection while it waits is given nothing', async () => {
  await using fixture = await openDeliveryFixture()
  const service = await fixture.startLocal({ roles: 'api' })
  const id = await makePulling(service)
  const { body: key } = await service.call('POST', '/api/v3/identity/api-key', { name: 'k', permissions: ['*:*'] })
  const url = new URL(service.url)
  const text = JSON.stringify({ wait_seconds: 30 })
  const gone = connect(Number(url.port), url.hostname)
  gone.write(
    `POST ${PATH}/${id}/pull HTTP/1.1\r\nhost: ${url.host}\r\nauthorization: Bearer ${key.data.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
  )
  // Ten wait at most: while this one does, nine more may.
  const isWaiting = async () => {
    const { status } = await service.call('GET', `${PATH}/${id}`)
    return status === 200 && gone.bytesWritten > 0
  }
  await waitFor('the wait', isWaiting)
  gone.destroy()
  await fixture.startLocal({ roles: 'dispatcher' })
  await fixture.change(service)
  const pulled = await service.call('POST', `${PATH}/${id}/pull`, { wait_seconds: 30 })
  expect(pulled.body.data.deliveries).toMatchObject([{ attempt: 1 }])
})

test('a process that is killed with a lease loses no delivery: another one gives it again, and nothing is missed', async () => {
  await using fixture = await openDeliveryFixture()
  const doomed = await fixture.start({ roles: 'api' })
  const id = await makePulling(doomed)
  await fixture.change(doomed)
  const worker = await fixture.startLocal({ roles: 'api,dispatcher,maintenance' })
  const [first] = (await doomed.call('POST', `${PATH}/${id}/pull`, { wait_seconds: 30 })).body.data.deliveries
  doomed.signal('SIGKILL')
  await doomed.ended
  // Stands for the passing of the lease and of the minute after it.
  await fixture.database.pool.query(
    `update webhook_dispatch_open set leased_until = now() - interval '61 s', last_attempt_at = now() - interval '121 s'`,
  )
  const pulled = await worker.call('POST', `${PATH}/${id}/pull`, { wait_seconds: 30 })
  const [second] = pulled.body.data.deliveries
  expect(second).toMatchObject({ id: first.id, attempt: 2 })
  const acked = await worker.call('POST', `${PATH}/${id}/ack`, { receipts: [first.receipt, second.receipt] })
  expect(acked.body.data.receipts).toMatchObject([{ status: 'expired' }, { status: 'acknowledged' }])
  expect(await fixture.waitForLedger(1, ['success'])).toMatchObject([{ attempts: 2 }])
})
