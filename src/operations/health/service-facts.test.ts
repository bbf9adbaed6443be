import { expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { VERSION } from '../../base/version.ts'
import { readMigrations } from '../../postgres/migration/migrate.ts'
import { compareMigrations } from './service-facts.ts'

const PATH = '/api/v3/health/service'
const at = new Date(Date.UTC(2026, 8, 11, 12))
const ran = (...names: string[]) => names.map((name) => ({ name, ran_at: at }))

test.each([
  ['nothing ran', [], { applied: 0, latest: null, latestAt: null, pending: ['1', '2'], ahead: [] }],
  ['one has not run', ['1'], { applied: 1, latest: '1', latestAt: at, pending: ['2'], ahead: [] }],
  ['all ran', ['1', '2'], { applied: 2, latest: '2', latestAt: at, pending: [], ahead: [] }],
  ['a newer release ran', ['1', '2', '3'], { applied: 3, latest: '3', latestAt: at, pending: [], ahead: ['3'] }],
])('the schema when %s', (_name, names, wanted) => {
  expect(compareMigrations(['1', '2'], ran(...names))).toEqual(wanted)
})

test('says what the process is made of, to those who may know', async () => {
  await using t = await createTestApp({ env: { ENABLE_API_EVENT_QUEUE: 'false' } })
  const startedAt = new Date(t.clock.now()).toISOString()
  t.clock.advance(60_000)
  const names = (await readMigrations()).map(({ name }) => name)
  expect((await t.admin('GET', PATH)).body.data).toEqual({
    version: VERSION,
    node: process.versions.node,
    environment: 'test',
    roles: expect.arrayContaining(['api']),
    started_at: startedAt,
    publishing: false,
    realtime: 'log-only',
    schema: {
      applied: names.length,
      latest: names.at(-1),
      latest_at: expect.any(String),
      pending: [],
      ahead: [],
    },
    rules: {
      attempts: 5,
      retry_delays_s: [60, 300, 1_800, 7_200],
      attempt_timeout_s: 15,
      auto_disable_after: 20,
      provisioning_attempts: 8,
    },
  })
  expect((await t.anonymous('GET', PATH)).status).toBe(401)
})
