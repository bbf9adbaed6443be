import pino from 'pino'
import { expect, it } from 'vitest'
import { createTestApp } from '../../test/harness/app.ts'
import { buildLogOptions } from './logger.ts'

it('probes and scrapes are logged at debug, other requests at info, and a failing probe at error', async () => {
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
