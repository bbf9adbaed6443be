import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import { stall } from '../../../test/harness/run/stall.ts'
import { parseAllowedTargets } from '../guard/callback-url.ts'
import { buildHttpSender, type HttpSender } from '../send/http-sender.ts'
import { startDeadline, watchLoop } from './loop-watch.ts'

const ended: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ended.splice(0)) await end()
})

/** A receiver in a process of its own, so that it answers while this one stands still. Returns its URL. */
async function receiveElsewhere(delayMs: number): Promise<string> {
  const script = `
    const server = require('node:http').createServer((request, response) => {
      request.resume().on('end', () => setTimeout(() => response.end('ok'), ${delayMs}))
    })
    server.listen(0, '127.0.0.1', () => console.log(server.address().port))`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  ended.push(() => child.kill())
  const [port] = await once(child.stdout, 'data')
  return `http://127.0.0.1:${String(port).trim()}/hook`
}

/** A POST is written behind the next looks at its socket. */
async function untilWritten(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate)
}

function build(totalTimeoutMs: number): HttpSender {
  const rules = { allowHttp: true, allowedPrivateTargets: parseAllowedTargets('127.0.0.0/8') }
  const sender = buildHttpSender({ lookup: async () => [], rules, totalTimeoutMs, connectTimeoutMs: totalTimeoutMs })
  ended.push(() => sender.close())
  return sender
}

const post = (sender: HttpSender, url: string) => sender.post({ url, headers: {}, body: '{}' })

describe('a process that stood still', () => {
  test('reads the answers that came meanwhile before it judges a deadline', async () => {
    const [url, sender] = [await receiveElsewhere(100), build(1_000)]
    expect(await post(sender, url)).toMatchObject({ statusCode: 200 })
    const running = Array.from({ length: 5 }, () => post(sender, url))
    // The requests are written, then nothing runs until the deadline is over.
    await untilWritten()
    stall(1_500)
    expect((await Promise.all(running)).map((result) => result.outcome)).toEqual(Array(5).fill('response'))
  })

  test('gives a receiver the time that it has missed itself, also before the request was written', async () => {
    const [url, sender] = [await receiveElsewhere(700), build(1_000)]
    const running = post(sender, url)
    stall(800)
    expect(await running).toMatchObject({ statusCode: 200 })
  })

  test('blames a receiver that does not answer in the time in which the process ran', async () => {
    const [url, sender] = [await receiveElsewhere(60_000), build(500)]
    const running = post(sender, url)
    await untilWritten()
    stall(400)
    const result = await running
    expect(result).toMatchObject({ errorClass: 'timeout', errorCode: 'NO_RESPONSE_IN_TIME' })
    expect(result.durationMs).toBeGreaterThanOrEqual(700)
  })

  test('ends a deadline after twice its time at most', async () => {
    const watch = watchLoop()
    ended.push(watch.stop)
    const order: string[] = []
    const over = new Promise<void>((resolve) => {
      startDeadline(watch, 300, () => {
        order.push('deadline')
        resolve()
      })
    })
    stall(5_000)
    // In the order of the loop, however slow it is. With all of the stall given back the deadline would end 4.7 s later.
    const late = setTimeout(() => setImmediate(() => order.push('late')), 3_000)
    await over
    expect(order).toEqual(['deadline'])
    clearTimeout(late)
  })

  test('knows how long it was, and takes small delays for none', () => {
    let now = 0
    const watch = watchLoop(() => now)
    ended.push(watch.stop)
    now = 150
    expect(watch.stalledMs()).toBe(0)
    now = 2_100
    expect(watch.stalledMs()).toBe(2_000)
  })
})
