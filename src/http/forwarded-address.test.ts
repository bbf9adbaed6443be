import { pino } from 'pino'
import { expect, test } from 'vitest'
import { buildManualClock } from '../../test/harness/run/manual-clock.ts'
import { buildIdMaker } from '../base/id.ts'
import { systemRandom } from '../base/random.ts'
import { parseTrustProxy } from './request/client-address.ts'
import { buildServer } from './server/server.ts'

/** A server that answers with the client address of a request, and the lines it logs. */
async function build(trust: string) {
  const clock = buildManualClock()
  const logged: { msg: string; address?: string; entry?: string }[] = []
  const server = await buildServer({
    logger: pino({ level: 'info' }, { write: (line) => void logged.push(JSON.parse(line)) }),
    clock,
    ids: buildIdMaker(clock, systemRandom),
    trustProxy: parseTrustProxy(trust),
    baseUrl: () => 'http://service.test',
  })
  server.get('/address', async (request) => request.ip)
  const ask = async (forwardedFor: string | string[], remoteAddress = '10.0.0.1') => {
    const headers = { 'x-forwarded-for': forwardedFor as string }
    return (await server.inject({ method: 'GET', url: '/address', headers, remoteAddress })).body
  }
  return { clock, logged, ask }
}

test('the client address is the rightmost one that is not a trusted proxy, also in the log line', async () => {
  const { ask, logged } = await build('10.0.0.0/8')
  expect(await ask('198.51.100.1, 203.0.113.9, 10.0.0.2')).toBe('203.0.113.9')
  expect(await ask('203.0.113.9', '192.0.2.1')).toBe('192.0.2.1')
  expect(await ask('203.0.113.9', '::ffff:10.0.0.7')).toBe('203.0.113.9')
  expect(logged.map(({ address }) => address)).toEqual(['203.0.113.9', '192.0.2.1', '203.0.113.9'])
})

test('without a trusted proxy the client address is the peer of the connection', async () => {
  const { ask } = await build('false')
  expect(await ask('203.0.113.9')).toBe('10.0.0.1')
})

test('an entry that is not an address is logged, cut to 64 characters, at most once a minute', async () => {
  const { ask, logged, clock } = await build('1')
  const warnings = () => logged.filter(({ msg }) => msg.startsWith('X-Forwarded-For ignored'))
  for (let count = 0; count < 5; count += 1) expect(await ask(`203.0.113.9, ${'x'.repeat(5_000)}`)).toBe('10.0.0.1')
  clock.advance(59_999)
  await ask('unknown')
  expect(warnings()).toMatchObject([{ entry: 'x'.repeat(64) }])
  clock.advance(1)
  await ask('unknown')
  expect(warnings()).toMatchObject([{}, { entry: 'unknown' }])
})
