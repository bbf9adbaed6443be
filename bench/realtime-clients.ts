import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { WebSocket } from 'ws'
import { buildRequestText, signText } from '../src/realtime/embedded/frame/signature.ts'
import { answerParent } from './child-process.ts'
import { monotonicMs } from './monotonic.ts'
import { BENCH_APP } from './realtime-app.ts'

/** The clients and the publisher of a realtime server, in a process of their own. */

/** Next command of the process. */
export type ClientsQuestion =
  /** Opens and subscribes clients, some at a time. */
  | { do: 'open'; port: number; count: number }
  /** Publishes one after the other, until all clients have all events. */
  | { do: 'fan-out'; port: number; publishes: number }
  /** Publishes at a steady rate. */
  | { do: 'rate'; port: number; perSecond: number; seconds: number }
  | { do: 'close' }

/** Measurement. */
export interface ClientsAnswer {
  ms: number
  /** Events that arrived. */
  arrivals: number
  /** From the request of the publisher to the arrival, for each arrival of `rate`. */
  latenciesMs: Float64Array
}

/** Handshakes at once. */
const CONCURRENCY = 64

/** Events that are still missing after this are lost. */
const ARRIVAL_LIMIT_MS = 60_000

const PATH = `/apps/${BENCH_APP.id}/events`
const CHANNEL = 'bench'

let clients: WebSocket[] = []
let arrivals = 0
let latencies: number[] = []

/** Opens one client and waits until it is subscribed. */
function openClient(port: number): Promise<WebSocket> {
  const webSocket = new WebSocket(`ws://127.0.0.1:${port}/app/${BENCH_APP.key}?protocol=7`, {
    perMessageDeflate: false,
  })
  let frames = 0
  return new Promise((resolve, reject) => {
    webSocket.on('error', reject)
    webSocket.on('close', () => reject(new Error('a client was closed')))
    webSocket.on('message', (data: Buffer) => {
      frames += 1
      if (frames === 1) webSocket.send(JSON.stringify({ event: 'pusher:subscribe', data: { channel: CHANNEL } }))
      else if (frames === 2) resolve(webSocket)
      else note(data)
    })
  })
}

function note(data: Buffer): void {
  arrivals += 1
  const at = data.indexOf('@')
  if (at !== -1) latencies.push(monotonicMs() - Number.parseFloat(data.toString('latin1', at + 1, at + 20)))
}

async function open({ port, count }: { port: number; count: number }): Promise<void> {
  let left = count
  const openSome = async () => {
    while (left > 0) {
      left -= 1
      clients.push(await openClient(port))
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, openSome))
}

async function publish(pool: Pool, text: string): Promise<void> {
  const body = JSON.stringify({ name: 'e', channels: [CHANNEL], data: text })
  const parameters = new Map([
    ['auth_key', BENCH_APP.key],
    ['auth_timestamp', String(Math.floor(Date.now() / 1000))],
    ['auth_version', '1.0'],
    ['body_md5', createHash('md5').update(body).digest('hex')],
  ])
  parameters.set('auth_signature', signText(BENCH_APP.secret, buildRequestText('POST', PATH, parameters)))
  const query = [...parameters].map(([name, value]) => `${name}=${value}`).join('&')
  const answer = await pool.request({ method: 'POST', path: `${PATH}?${query}`, body })
  await answer.body.dump()
  if (answer.statusCode !== 200) throw new Error(`a publish was answered ${answer.statusCode}`)
}

async function waitForArrivals(expected: number): Promise<void> {
  const endAt = performance.now() + ARRIVAL_LIMIT_MS
  while (arrivals < expected && performance.now() < endAt) await sleep(1)
  if (arrivals < expected) throw new Error(`${expected - arrivals} of ${expected} events did not arrive`)
}

async function fanOut(pool: Pool, publishes: number): Promise<void> {
  const text = 'x'.repeat(200)
  for (let n = 0; n < publishes; n += 1) await publish(pool, text)
  await waitForArrivals(publishes * clients.length)
}

async function publishAtRate(pool: Pool, load: { perSecond: number; seconds: number }): Promise<void> {
  const startMs = monotonicMs()
  const total = load.perSecond * load.seconds
  const sent: Promise<void>[] = []
  for (let n = 0; n < total; ) {
    const due = Math.min(total, Math.floor(((monotonicMs() - startMs) * load.perSecond) / 1000))
    for (; n < due; n += 1) sent.push(publish(pool, `@${monotonicMs().toFixed(4)} ${'x'.repeat(180)}`))
    await sleep(1)
  }
  await Promise.all(sent)
  await waitForArrivals(total * clients.length)
}

async function perform(question: ClientsQuestion): Promise<void> {
  if (question.do === 'open') return open(question)
  if (question.do === 'close') {
    for (const client of clients) client.terminate()
    clients = []
    return
  }
  await using stack = new AsyncDisposableStack()
  const pool = new Pool(`http://127.0.0.1:${question.port}`, { connections: 8 })
  stack.defer(() => pool.close())
  await (question.do === 'fan-out' ? fanOut(pool, question.publishes) : publishAtRate(pool, question))
}

answerParent<ClientsQuestion, ClientsAnswer>(async (question) => {
  arrivals = 0
  latencies = []
  const startMs = monotonicMs()
  await perform(question)
  return { ms: monotonicMs() - startMs, arrivals, latenciesMs: Float64Array.from(latencies) }
})
