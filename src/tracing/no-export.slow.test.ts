import { expect, test } from 'vitest'
import { createTestDatabase } from '../../test/harness/database/database.ts'
import { startService } from '../../test/harness/process/service-process.ts'

/** Writes, at the end of the process, which packages of OpenTelemetry were loaded; the metrics library always loads the API. */
const HOOK = `
  import { registerHooks } from 'node:module'
  const loaded = new Set()
  registerHooks({
    load(url, context, next) {
      if (/@opentelemetry.(?!api)/.test(url)) loaded.add(url)
      return next(url, context)
    },
  })
  process.on('exit', () => console.log('OpenTelemetry: ' + loaded.size + ' modules'))`

const IMPORT_HOOK = `--import data:text/javascript,${encodeURIComponent(HOOK)}`

test.each([
  ['loads no package of OpenTelemetry without an endpoint', {}, /OpenTelemetry: 0 modules/],
  [
    'loads the packages of OpenTelemetry with an endpoint',
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' },
    /OpenTelemetry: [1-9]\d* modules/,
  ],
])('a service %s', async (_what, env, expected) => {
  await using database = await createTestDatabase({ content: 'prepared' })
  await using service = await startService({
    databaseUrl: database.connectionString,
    token: '',
    env: { NODE_OPTIONS: IMPORT_HOOK, SIGNALBOX_ROLES: 'api', ...env },
  })
  expect(await service.stop()).toEqual({ code: 0, signal: null })
  expect(service.stdout()).toMatch(expected)
})
