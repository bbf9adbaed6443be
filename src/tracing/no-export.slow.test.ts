import { expect, test } from 'vitest'
import { createTestDatabase } from '../../test/harness/database/database.ts'
import { PROJECT_ROOT, startProcess } from '../../test/harness/process/process.ts'
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

test('a service without an endpoint loads no package of OpenTelemetry', async () => {
  await using database = await createTestDatabase({ content: 'prepared' })
  await using service = await startService({
    databaseUrl: database.connectionString,
    token: '',
    // The sources, whose packages load by their names; one that is bundled has none.
    root: PROJECT_ROOT,
    env: { NODE_OPTIONS: IMPORT_HOOK, SIGNALBOX_ROLES: 'api' },
  })
  expect(await service.stop()).toEqual({ code: 0, signal: null })
  expect(service.stdout()).toMatch(/OpenTelemetry: 0 modules/)
})

test('the packages are counted where they are loaded', async () => {
  const module = new URL('otel-packages.ts', import.meta.url).href
  const script = `import { loadOtelPackages } from '${module}'; await loadOtelPackages(console)`
  await using loading = startProcess({
    args: ['--input-type=module', '--eval', script],
    env: { NODE_OPTIONS: IMPORT_HOOK },
  })
  expect(await loading.ended).toEqual({ code: 0, signal: null })
  expect(loading.stdout()).toMatch(/OpenTelemetry: [1-9]\d* modules/)
})
