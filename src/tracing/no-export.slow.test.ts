import { createRequire } from 'node:module'
import pino from 'pino'
import { expect, test } from 'vitest'
import { createTestApp } from '../../test/harness/app.ts'
import { systemClock } from '../clock.ts'
import { systemRandom } from '../random.ts'
import { openSpanExport } from './span-export.ts'

/** The loaded packages of OpenTelemetry; the metrics library always loads `@opentelemetry/api`. */
function listLoaded(): string[] {
  return Object.keys(createRequire(import.meta.url).cache).filter((path) => /@opentelemetry.(?!api)/.test(path))
}

test('the service loads the OpenTelemetry packages only with an endpoint', async () => {
  await using app = await createTestApp()
  expect((await app.admin('POST', '/api/v3/identity/account', { name: 'Untraced' })).status).toBe(201)
  await app.settle()
  expect(listLoaded()).toEqual([])
  const logger = pino({ level: 'silent' })
  const service = { instanceId: 'here', version: '1', clock: systemClock, random: systemRandom }
  const spanExport = await openSpanExport({ ...service, endpoint: 'http://127.0.0.1:1', logger })
  await spanExport?.stop()
  expect(listLoaded()).not.toEqual([])
})
