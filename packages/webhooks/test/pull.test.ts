import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { PullError, type PulledDelivery, type PullOptions, pullDeliveries } from '../src/pull.ts'
import { signDelivery } from '../src/testing.ts'
import { BODY, EVENT_ID, OTHER_SECRET, SECRET } from './delivery-fixture.ts'

const WEBHOOK = '01997e2a-6c00-7000-8000-0000000000d4'

interface Answer {
  status?: number
  headers?: Record<string, string>
  body: object
}

/** A service that answers pulls and acknowledgements. */
async function openService(answers: {
  pull: (count: number, body: Record<string, number>) => Answer | Promise<Answer>
  ack?: (count: number, receipts: string[]) => Answer
  /** The answer to an action of a lease, by its status. */
  change?: (count: number, action: string, receipts: string[]) => Answer
}) {
  const changes: { action: string; receipts: string[]; lease_seconds?: number }[] = []
  const seen = {
    changes,
    pulls: [] as Record<string, number>[],
    acks: [] as string[][],
    tokens: new Set<string | undefined>(),
  }
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await readText(request))
    seen.tokens.add(request.headers.authorization)
    const isPull = request.url === `/api/v3/webhook/webhook/${WEBHOOK}/pull`
    const action = request.url?.split('/').at(-1) ?? ''
    const isChange = action === 'nack' || action === 'extend'
    if (isPull) seen.pulls.push(body)
    else if (isChange) changes.push({ action, ...body })
    else seen.acks.push(body.receipts)
    const acknowledged = (receipts: string[]): Answer => ({
      body: { data: { receipts: receipts.map((receipt) => ({ receipt, status: 'acknowledged' })) } },
    })
    const {
      status = 200,
      headers = {},
      body: sent,
    } = isPull
      ? await answers.pull(seen.pulls.length, body)
      : isChange && answers.change
        ? answers.change(changes.length, action, body.receipts)
        : (answers.ack ?? ((_count, receipts) => acknowledged(receipts)))(seen.acks.length, body.receipts)
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(sent))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    ...seen,
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text
}

async function makeDelivery(number: number, secret = SECRET): Promise<PulledDelivery> {
  const id = `01997e2a-6c00-7000-8000-00000000000${number}`
  const headers = await signDelivery({ secret, body: BODY, id: EVENT_ID })
  return {
    ...{ id, receipt: `${id}:1`, attempt: 1, headers, body: BODY },
    lease_until: new Date(Date.now() + 60_000).toISOString(),
  }
}

const deliveries = (list: readonly PulledDelivery[]): Answer => ({ body: { data: { deliveries: list } } })

/** Runs the loop until `onDelivery` or `onError` ends it. */
async function run(
  service: { baseUrl: string },
  handlers: Partial<PullOptions> & { onStop?: (stop: AbortController) => void },
): Promise<void> {
  const { onStop, ...options } = handlers
  const stop = new AbortController()
  onStop?.(stop)
  await pullDeliveries({
    ...{ baseUrl: service.baseUrl, token: 'sbx_test', webhook: WEBHOOK, secret: SECRET, signal: stop.signal },
    onDelivery: () => stop.abort(),
    ...options,
  })
}

test('a genuine delivery is handled, then acknowledged, and the abort ends the loop after that', async () => {
  const delivery = await makeDelivery(1)
  await using service = await openService({ pull: (count) => deliveries(count === 1 ? [delivery] : []) })
  const handled: string[] = []
  let stop: AbortController | undefined
  await run(service, {
    onStop: (given) => {
      stop = given
    },
    onDelivery: (envelope, { receipt }) => {
      handled.push(`${envelope.type} ${receipt}`)
      stop?.abort()
    },
  })
  expect(handled).toEqual([`contract.update ${delivery.receipt}`])
  expect(service.acks).toEqual([[delivery.receipt]])
  expect(service.pulls[0]).toEqual({ max: 10, lease_seconds: 60, wait_seconds: 20 })
  expect([...service.tokens]).toEqual(['Bearer sbx_test'])
})

test('what is signed with another secret, or not handled, is not acknowledged, and reported with the delivery', async () => {
  const [forged, failing] = [await makeDelivery(1, OTHER_SECRET), await makeDelivery(2)]
  await using service = await openService({ pull: (count) => deliveries(count === 1 ? [forged, failing] : []) })
  const errors = new Map<string | undefined, string>()
  let stop: AbortController | undefined
  await run(service, {
    onStop: (given) => {
      stop = given
    },
    onDelivery: () => {
      throw new Error('the database is down')
    },
    onError: (error, delivery) => {
      errors.set(delivery?.id, (error as Error).message)
      if (errors.size === 2) stop?.abort()
    },
  })
  expect(errors.get(forged.id)).toMatch(/signature/i)
  expect(errors.get(failing.id)).toBe('the database is down')
  expect(service.acks).toEqual([])
})

test('no more deliveries than the concurrency are in hand, and no pull asks for more', async () => {
  const all = await Promise.all([1, 2, 3, 4, 5].map((number) => makeDelivery(number)))
  let given = 0
  await using service = await openService({
    pull: (_count, { max = 0 }) => {
      const next = all.slice(given, given + max)
      given += next.length
      return deliveries(next)
    },
  })
  let [atOnce, most, handled] = [0, 0, 0]
  // The first waits for the second: how long each is verified decides nothing.
  const both = Promise.withResolvers<void>()
  let stop: AbortController | undefined
  await run(service, {
    concurrency: 2,
    onStop: (made) => {
      stop = made
    },
    onDelivery: async () => {
      atOnce += 1
      most = Math.max(most, atOnce)
      if (atOnce === 2) both.resolve()
      await both.promise
      await new Promise((resolve) => setImmediate(resolve))
      atOnce -= 1
      handled += 1
      if (handled === all.length) stop?.abort()
    },
  })
  expect(most).toBe(2)
  for (const { max } of service.pulls) expect(max).toBeLessThanOrEqual(2)
  expect(service.acks.flat().sort()).toEqual(all.map((item) => item.receipt).sort())
})

test.each([401, 403, 404, 422])('a refusal with %s rejects', async (status) => {
  await using service = await openService({ pull: () => ({ status, body: { code: 'refused', detail: 'No.' } }) })
  const error = await run(service, {}).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(PullError)
  expect(error).toMatchObject({ status, code: 'refused', message: 'No.' })
  expect(service.pulls).toHaveLength(1)
})

test.each([
  ['429', { status: 429, headers: { 'retry-after': '0' }, body: { code: 'rate_limited' } }],
  ['503', { status: 503, headers: { 'retry-after': '0' }, body: { code: 'overloaded' } }],
  ['409 of an inactive webhook', { status: 409, headers: { 'retry-after': '0' }, body: { code: 'webhook_inactive' } }],
])('after a %s the pull is made again, and the error reported', async (_what, refusal) => {
  const delivery = await makeDelivery(1)
  await using service = await openService({
    pull: (count) => (count === 1 ? refusal : deliveries(count === 2 ? [delivery] : [])),
  })
  const errors: unknown[] = []
  let stop: AbortController | undefined
  await run(service, {
    onStop: (given) => {
      stop = given
    },
    onDelivery: () => stop?.abort(),
    onError: (error) => errors.push(error),
  })
  expect(errors).toMatchObject([{ status: refusal.status }])
  expect(service.acks).toEqual([[delivery.receipt]])
})

test('an acknowledgement that fails for a time is repeated, and a lease that ended is reported', async () => {
  const [delivery, late] = [await makeDelivery(1), await makeDelivery(2)]
  await using service = await openService({
    pull: (count) => deliveries(count === 1 ? [delivery] : count === 2 ? [late] : []),
    ack: (count, [receipt]) => {
      if (count === 1) return { status: 503, headers: { 'retry-after': '0' }, body: { code: 'overloaded' } }
      return { body: { data: { receipts: [{ receipt, status: count === 2 ? 'acknowledged' : 'expired' }] } } }
    },
  })
  const errors: unknown[] = []
  let stop: AbortController | undefined
  await run(service, {
    concurrency: 1,
    onStop: (given) => {
      stop = given
    },
    onDelivery: () => undefined,
    onError: (error) => {
      errors.push(error)
      stop?.abort()
    },
  })
  expect(service.acks).toEqual([[delivery.receipt], [delivery.receipt], [late.receipt]])
  expect(errors).toMatchObject([{ code: 'lease_expired' }])
})

test('an abort ends a pull that waits', async () => {
  const stop = new AbortController()
  await using service = await openService({
    pull: () => {
      stop.abort()
      return new Promise<Answer>(() => {})
    },
  })
  const { baseUrl } = service
  await pullDeliveries({
    ...{ baseUrl, token: 't', webhook: WEBHOOK, secret: SECRET, signal: stop.signal, onDelivery: () => {} },
  })
  expect(service.pulls).toHaveLength(1)
})

const judged = (receipts: string[], status: string, more: object = {}): Answer => ({
  body: { data: { receipts: receipts.map((receipt) => ({ receipt, status, ...more })) } },
})

test('a delivery that its handler gives back is not acknowledged, and a failed call is made again', async () => {
  const delivery = await makeDelivery(1)
  await using service = await openService({
    pull: (count) => deliveries(count === 1 ? [delivery] : []),
    change: (count, _action, receipts) =>
      count === 1 ? { status: 503, headers: { 'retry-after': '0' }, body: {} } : judged(receipts, 'returned'),
  })
  let stop: AbortController | undefined
  await run(service, {
    onStop: (given) => {
      stop = given
    },
    onDelivery: async (_envelope, _delivery, lease) => {
      await lease.nack()
      stop?.abort()
    },
  })
  const change = { action: 'nack', receipts: [delivery.receipt] }
  expect(service.changes).toEqual([change, change])
  expect(service.acks).toEqual([])
})

test('a lease is extended as often as its handler asks, then acknowledged; one that had ended is an error', async () => {
  const [slow, late] = [await makeDelivery(1), await makeDelivery(2)]
  const until = new Date(Date.now() + 300_000).toISOString()
  await using service = await openService({
    pull: (count) => deliveries(count === 1 ? [slow, late] : []),
    change: (_count, _action, receipts) =>
      receipts[0] === slow.receipt
        ? judged(receipts, 'extended', { lease_until: until })
        : judged(receipts, 'expired', { lease_until: null }),
  })
  const ends: string[] = []
  const errors: unknown[] = []
  let stop: AbortController | undefined
  await run(service, {
    onStop: (given) => {
      stop = given
    },
    onDelivery: async (_envelope, _delivery, lease) => {
      ends.push(await lease.extend(300), await lease.extend())
    },
    onError: (error, delivery) => {
      errors.push([delivery?.id, (error as PullError).code])
      stop?.abort()
    },
  })
  expect(ends).toEqual([until, until])
  expect(service.changes.filter(({ receipts }) => receipts[0] === slow.receipt)).toMatchObject([
    { action: 'extend', lease_seconds: 300 },
    { action: 'extend', lease_seconds: 60 },
  ])
  expect(service.acks).toEqual([[slow.receipt]])
  expect(errors).toEqual([[late.id, 'lease_expired']])
})
