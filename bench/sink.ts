import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { answerParent } from './child-process.ts'
import { monotonicMs } from './monotonic.ts'

/**
 * A receiver in a process of its own, which notes when each delivery arrives. What it does with one is in the path:
 * `/ok/<number>` answers 200, `/wait-<ms>/<number>` does so after that time, `/hang/<number>` never answers, and
 * `/hang-once/<number>` answers from the second arrival of a delivery on.
 */

/**
 * Next command of the sink. `begin` forgets all earlier arrivals, `wait` answers when they are there, stop
 * coming for `stallMs`, or after `limitMs` (default: never).
 */
export type SinkQuestion =
  | { do: 'open' }
  | { do: 'begin'; run: number; numberedBy: ArrivalNumber }
  | { do: 'wait'; arrivals: number; repeats: number; stallMs: number; limitMs?: number }

/** A delivery is identified by the number of its event (`buildResourceId`), or by the number in its path. */
export type ArrivalNumber = 'event' | 'path'

/** The sink's answer to every question. */
export interface SinkState {
  /** `http://127.0.0.1:<port>` */
  origin: string
  /** The same of a port where nothing listens. */
  refusingOrigin: string
  /** Of delivery number n: when it arrived first (`monotonicMs`), 0 when it did not. What hangs for good is not in it. */
  firstAtMs: Float64Array
  /** When it arrived for the second time, 0 when it did not. */
  againAtMs: Float64Array
  /** Deliveries that arrived at all, and arrivals beyond the first of each. */
  arrivals: number
  repeats: number
  /** Requests that were left hanging for good. */
  hanging: number
}

/** Deliveries of one load at most; the publisher sends no more. */
const CAPACITY = 2_000_000

/** How often `wait` looks. It is no part of any figure: arrivals are noted as they come. */
const LOOK_MS = 20

const RESOURCE_ID = /"id":"r(\d+)-(\d+)"/

let run = -1
let numberedBy: ArrivalNumber = 'event'
const first = new Float64Array(CAPACITY)
const again = new Float64Array(CAPACITY)
let arrivals = 0
let repeats = 0
let hanging = 0
let highest = -1

function begin(next: { run: number; numberedBy: ArrivalNumber }): void {
  first.fill(0, 0, highest + 1)
  again.fill(0, 0, highest + 1)
  arrivals = 0
  repeats = 0
  hanging = 0
  highest = -1
  run = next.run
  numberedBy = next.numberedBy
}

/** Notes an arrival. Returns whether the delivery has arrived before. */
function note(number: number, atMs: number): boolean {
  if (number > highest) highest = number
  if (first[number] === 0) {
    first[number] = atMs
    arrivals += 1
    return false
  }
  if (again[number] === 0) again[number] = atMs
  repeats += 1
  return true
}

function receive(request: IncomingMessage, response: ServerResponse): void {
  const atMs = monotonicMs()
  let body = ''
  request.setEncoding('latin1')
  request.on('data', (chunk: string) => {
    body += chunk
  })
  request.on('end', () => {
    const [, behaviour = '', pathNumber] = (request.url ?? '').split('/')
    const [, ofRun, eventNumber] = RESOURCE_ID.exec(body) ?? []
    const isOfRun = Number(ofRun) === run
    if (behaviour === 'hang') {
      if (isOfRun) hanging += 1
      return
    }
    const hasArrived = isOfRun && note(Number(numberedBy === 'event' ? eventNumber : pathNumber), atMs)
    if (behaviour === 'hang-once' && !hasArrived) return
    const waitMs = /^wait-(\d+)$/.exec(behaviour)?.[1]
    const answer = () => response.writeHead(200, { 'content-length': 2 }).end('ok')
    if (waitMs === undefined) answer()
    else setTimeout(answer, Number(waitMs))
  })
}

async function wait(until: { arrivals: number; repeats: number; stallMs: number; limitMs?: number }): Promise<void> {
  let seen = -1
  let movedAt = monotonicMs()
  const endsAt = movedAt + (until.limitMs ?? Number.POSITIVE_INFINITY)
  while (arrivals < until.arrivals || repeats < until.repeats) {
    await sleep(LOOK_MS)
    if (arrivals + repeats !== seen) {
      seen = arrivals + repeats
      movedAt = monotonicMs()
    } else if (monotonicMs() - movedAt > until.stallMs) return
    if (monotonicMs() > endsAt) return
  }
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function open() {
  const closing = createServer()
  const refusingOrigin = await listen(closing)
  // Bound last before `closing` frees its port, so it gets another one.
  const origin = await listen(createServer({ keepAliveTimeout: 120_000, requestTimeout: 0 }, receive))
  await new Promise((resolve) => closing.close(resolve))
  return { origin, refusingOrigin }
}

const opened = open()

answerParent(async (question: SinkQuestion): Promise<SinkState> => {
  if (question.do === 'begin') begin(question)
  if (question.do === 'wait') await wait(question)
  const [firstAtMs, againAtMs] = [first.slice(0, highest + 1), again.slice(0, highest + 1)]
  return { ...(await opened), firstAtMs, againAtMs, arrivals, repeats, hanging }
})
