import { expect, test } from 'vitest'
import nodeArguments from '../../bin/node-arguments.json' with { type: 'json' }
import { TEST_METRICS_TOKEN } from '../harness/app/test-secrets.ts'
import { countSeen, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import type { ServiceProcess } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

/** Waits for metrics other than `before`: they are made once in 5 s. */
async function readMemory(service: ServiceProcess, before?: string): Promise<{ bytes: number; metrics: string }> {
  const headers = { authorization: `Bearer ${TEST_METRICS_TOKEN}` }
  const metrics = await waitFor('fresh metrics', async () => {
    const text = await (await fetch(`${service.url}/metrics`, { headers })).text()
    return text !== before && text
  })
  const bytes = Number(/^process_resident_memory_bytes (\S+)$/m.exec(metrics)?.[1])
  if (!(bytes > 0)) throw new Error('the metrics name no resident memory')
  return { bytes, metrics }
}

test('memory stays flat over 800 deliveries to a receiver that answers without end', async () => {
  await using fixture = await openDeliveryFixture()
  const receiver = await fixture.receive()
  // Those of operators: with the defaults of Node the heap alone grows by as much as a leak would.
  const service = await fixture.start({ env: { WEBHOOK_CONCURRENCY: '8' }, nodeArguments })
  await fixture.subscribe(service, receiver)
  receiver.behave({ kind: 'endless' })
  await fixture.recordEvents(200)
  await fixture.waitForLedger(200, ['success'])
  const warm = await readMemory(service)
  await fixture.recordEvents(600)
  const rows = await fixture.waitForLedger(800, ['success'], 90_000)
  // A leak of one answer's head and excerpt alone would show: 600 answers of 64 KiB are 39 MB.
  const grownBy = (await readMemory(service, warm.metrics)).bytes - warm.bytes
  process.stdout.write(`memory after 200 deliveries and 600 more: ${Math.round(grownBy / 1e6)} MB more\n`)
  expect(grownBy).toBeLessThan(35_000_000)
  expect(rows.filter((row) => row.attempts !== 1)).toEqual([])
  expect(receiver.requests).toHaveLength(800)
})

test('a dead subscriber and a slow one delay no healthy one: it has all its deliveries while theirs still hang', async () => {
  await using fixture = await openDeliveryFixture()
  const [dead, slow, healthy] = [await fixture.receive(), await fixture.receive(), await fixture.receive()]
  dead.behave({ kind: 'hang' })
  const answer = Promise.withResolvers<void>()
  slow.behave({ kind: 'wait', until: answer.promise })
  const service = await fixture.startLocal({ env: { WEBHOOK_CONCURRENCY: '8' } })
  const ids: string[] = []
  for (const receiver of [dead, slow, healthy]) ids.push(await fixture.subscribe(service, receiver))
  await fixture.recordEvents(60)

  // Many times what the eight places hold: were one place lost for good to each that hangs, these would not come.
  // In order of their coming, those that hang would keep it waiting for minutes: 120 POSTs of 15 s over eight places.
  await healthy.waitFor(60)
  const at = (rows: { webhook: string; log: unknown[] }[], index: number) =>
    rows.filter((row) => row.webhook === ids[index]).flatMap((row) => row.log)
  const rows = await waitFor('the record of the healthy', async () => {
    const found = await fixture.readLedger()
    return at(found, 2).length === 60 && found
  })
  expect(at(rows, 0).length).toBeLessThan(30)
  expect(at(rows, 1).length).toBeLessThan(30)

  answer.resolve()
  slow.behave({ kind: 'status', status: 200 })
  await waitFor('the slow one', async () => at(await fixture.readLedger(), 1).length === 60)
  await service.stop()
  const ended = await fixture.readLedger()
  const left = ended.filter((row) => row.webhook === ids[0])
  expect(left).toHaveLength(60)
  expect(left.every((row) => ['pending', 'retrying'].includes(row.status) && row.leaseOwner === null)).toBe(true)
  const seen = countSeen(dead)
  expect(left.filter((row) => row.attempts !== (seen.get(row.id)?.length ?? 0))).toEqual([])
})
