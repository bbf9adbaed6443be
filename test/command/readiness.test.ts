import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../harness/database.ts'
import { startHere } from '../harness/local-start.ts'
import { callService } from '../harness/service-process.ts'
import { waitFor } from '../harness/wait.ts'

const EMAIL = 'admin@signalbox.localhost'
const PASSWORD = 'correct horse battery'

test('in development /readyz is 503 until the first administrator exists and can sign in', async () => {
  await using database = await createTestDatabase()
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox readiness '))
  const blocker = await database.pool.connect()
  try {
    // The lock blocks all access to users, so the start waits before it creates the administrator.
    await blocker.query('begin; lock table "user" in access exclusive mode')
    await using started = startHere({
      PORT: '0',
      DATABASE_URL: database.connectionString,
      SIGNALBOX_DATA_DIR: dataDir,
      SIGNALBOX_ADMIN_PASSWORD: PASSWORD,
    })
    const [, port] = await started.waitForOutput(/Server listening at http:\/\/127\.0\.0\.1:(\d+)/)
    const url = `http://127.0.0.1:${port}`
    const get = (path: string) => callService({ url }, { method: 'GET', path })
    expect(await get('/readyz')).toMatchObject({ status: 503, body: { status: 'starting' } })
    expect((await get('/livez')).status).toBe(200)
    await blocker.query('rollback')
    await waitFor('readiness', async () => (await get('/readyz')).status === 200)
    const body = { email: EMAIL, password: PASSWORD }
    const signedIn = await callService({ url }, { method: 'POST', path: '/api/v3/auth/login/local', body })
    expect(signedIn).toMatchObject({ status: 200, body: { data: { jwt: expect.any(String) } } })
  } finally {
    blocker.release(true)
    await rm(dataDir, { recursive: true, force: true })
  }
})
