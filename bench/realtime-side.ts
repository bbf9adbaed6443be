import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import pino from 'pino'
import { type WebSocket, WebSocketServer } from 'ws'
import { systemClock } from '../src/base/clock.ts'
import { buildIdMaker } from '../src/base/id.ts'
import { systemRandom } from '../src/base/random.ts'
import { migrate } from '../src/postgres/migration/migrate.ts'
import { openDatabase } from '../src/postgres/statement/database.ts'
import { startRealtimeServer } from '../src/realtime/embedded/realtime-server.ts'
import { answerParent } from './child-process.ts'
import { BENCH_APP } from './realtime-app.ts'

/** A realtime server in a process of its own: the embedded one, or a bare `ws` broadcast. */

/** Next command of the process; `memory` first collects garbage. */
export type SideQuestion = { do: 'start'; side: 'embedded' | 'bare'; connectionString: string } | { do: 'memory' }

/** The answer to every question. */
export interface SideState {
  port: number
  rssBytes: number
}

/** Above every measurement. */
const NO_LIMIT = 1_000_000

let port = 0

async function startEmbedded(connectionString: string): Promise<void> {
  const database = openDatabase({ connectionString, size: 4, applicationName: 'bench', onError: () => {} })
  await migrate(connectionString)
  const server = startRealtimeServer({
    apps: [BENCH_APP],
    db: database.db,
    connectionString,
    clock: systemClock,
    isTrusted: () => true,
    random: systemRandom,
    ids: buildIdMaker(systemClock, systemRandom),
    logger: pino({ level: 'error' }),
    limits: { connections: NO_LIMIT, connectionsPerAddress: NO_LIMIT, newConnectionsPerAddress: NO_LIMIT },
    rest: systemClock.sleep,
  })
  await server.ready
  const http = createServer((request, response) => void server.handleRequest(request, response))
  http.on('upgrade', server.handleUpgrade)
  await listen(http)
}

/** The least that greets, takes a subscription, and sends each published event to all subscribers. */
async function startBare(): Promise<void> {
  const subscribers = new Set<WebSocket>()
  const http = createServer(async (request, response) => {
    const { name, channels, data } = JSON.parse(await readText(request)) as Record<string, unknown>
    const text = JSON.stringify({ event: name, channel: (channels as string[])[0], data })
    for (const subscriber of subscribers) subscriber.send(text)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  const server = new WebSocketServer({ server: http, perMessageDeflate: false })
  server.on('connection', (webSocket) => {
    webSocket.send('{"event":"pusher:connection_established","data":"{}"}')
    webSocket.on('message', () => {
      subscribers.add(webSocket)
      webSocket.send('{"event":"pusher_internal:subscription_succeeded","channel":"c","data":"{}"}')
    })
    webSocket.on('close', () => subscribers.delete(webSocket))
  })
  await listen(http)
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

async function listen(http: ReturnType<typeof createServer>): Promise<void> {
  await new Promise<void>((resolve) => http.listen({ port: 0, host: '127.0.0.1', backlog: 2_048 }, resolve))
  port = (http.address() as AddressInfo).port
}

answerParent<SideQuestion, SideState>(async (question) => {
  if (question.do === 'start') await (question.side === 'bare' ? startBare() : startEmbedded(question.connectionString))
  else globalThis.gc?.()
  return { port, rssBytes: process.memoryUsage.rss() }
})
