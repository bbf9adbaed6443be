import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'

test('a connection outside the pool takes statements that overlap, without a warning of the driver', async () => {
  await using database = await createTestDatabase({ content: 'empty' })
  // A process of its own: the driver warns once a process.
  const script = `
    import { openClient } from ${JSON.stringify(new URL('./listener.ts', import.meta.url).href)}
    const client = openClient(process.env.CONNECTION_STRING, 'signalbox test')
    await client.connect()
    await Promise.all(Array.from({ length: 4 }, () => client.query('notify overlapping')))
    await client.end()`
  const env = { ...process.env, CONNECTION_STRING: database.connectionString }
  const { stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], { env })
  expect(stderr).not.toContain('Warning')
})
