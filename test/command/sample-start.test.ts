import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../harness/database/database.ts'
import { startHere } from '../harness/process/local-start.ts'
import { callService } from '../harness/process/service-process.ts'

test('--sample adds its rows before the service is ready, and a second start adds nothing; the console comes after all', async () => {
  await using database = await createTestDatabase()
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox sample '))
  const env = { PORT: '0', DATABASE_URL: database.connectionString, SIGNALBOX_DATA_DIR: dataDir }
  const count = async () =>
    (await database.pool.query<{ rows: number }>('select count(*)::int as rows from webhook_dispatch_ended')).rows[0]
      ?.rows
  try {
    const shown = Promise.withResolvers<{ output: string; readyz: number }>()
    {
      await using first = startHere(env, {
        ...{ demo: true, sample: true },
        // Where the command begins to build the console.
        onShown: () => {
          const output = first.stdout()
          const url = /Operator console: (\S+)\/console/.exec(output)?.[1] ?? ''
          callService({ url }, { method: 'GET', path: '/readyz' }).then(
            ({ status }) => shown.resolve({ output, readyz: status }),
            shown.reject,
          )
        },
      })
      await first.waitForOutput(/Stop with Ctrl-C\./)
      const { output, readyz } = await shown.promise
      expect(output).toMatch(
        /^Operator console: http:\/\/localhost:\d+\/console\nSample data: 12 accounts, 41 webhooks, \d+ events and \d+ deliveries of a month, added in [\d.]+ s\.\n/,
      )
      expect(output).toMatch(/A change through the API[\s\S]*success[\s\S]*Stop with Ctrl-C\./)
      expect(readyz).toBe(200)
    }
    const rows = await count()
    await using second = startHere(env, { demo: true, sample: true })
    await second.waitForOutput(/\nSample data: there from an earlier start, nothing added\.\n/)
    await second.waitForOutput(/Stop with Ctrl-C\./)
    // The demonstration made one delivery more, and what waited was made meanwhile.
    expect((await count()) ?? 0).toBeLessThan((rows ?? 0) + 100)
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
})
