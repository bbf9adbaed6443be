import pino from 'pino'
import { expect, test } from 'vitest'
import { createTestApp } from '../../test/harness/app/app.ts'
import { buildLogOptions } from './log/logger.ts'

test('probes and scrapes are logged at debug, other requests at info, and a failing probe at error', async () => {
  const lines: { level: string; route: string; msg: string }[] = []
  const logger = pino(buildLogOptions('debug'), { write: (line: string) => void lines.push(JSON.parse(line)) })
  await using app = await createTestApp({ logger, hasStarted: () => lines.length < 3 })
  for (const path of ['/livez', '/readyz']) await app.anonymous('GET', path)
  await app.scrape()
  await app.anonymous('GET', '/api/v3/health')
  await app.anonymous('GET', '/readyz')
  const requests = lines.filter(({ msg }) => msg === 'request').map(({ level, route }) => `${level} ${route}`)
  expect(requests).toEqual(['debug /livez', 'debug /readyz', 'debug /metrics', 'info /api/v3/health', 'error /readyz'])
})

test('a request that no route serves has its path, without query, cut, and in characters that a terminal prints', async () => {
  const lines: { route: string | null; path?: string; status: number }[] = []
  const logger = pino(buildLogOptions('info'), { write: (line: string) => void lines.push(JSON.parse(line)) })
  await using app = await createTestApp({ logger })
  lines.length = 0
  await app.anonymous('GET', '/nothing/here?token=secret-of-a-query')
  await app.anonymous('GET', `/${'x'.repeat(300)}`)
  await app.anonymous('GET', '/api/v3/health?x=1')
  const shown = lines.map(({ route, path, status }) => ({ route, path, status }))
  expect(shown).toEqual([
    { route: null, path: '/nothing/here', status: 404 },
    { route: null, path: `/${'x'.repeat(199)}`, status: 404 },
    { route: '/api/v3/health', path: undefined, status: 200 },
  ])
  expect(JSON.stringify(lines)).not.toContain('secret-of-a-query')
})
