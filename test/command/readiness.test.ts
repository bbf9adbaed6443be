import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../harness/database/database.ts'
import { startHere } from '../harness/process/local-start.ts'
import { callService } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

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

test('with the demonstration the token is in its file and works when /readyz is 200', async () => {
  await using database = await createTestDatabase()
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox readiness '))
  const blocker = await database.pool.connect()
  try {
    // The lock blocks the key of the token, behind the administrator, who is there already.
    await using started = startHere(
      { PORT: '0', DATABASE_URL: database.connectionString, SIGNALBOX_DATA_DIR: dataDir, LOG_LEVEL: 'info' },
      { demo: true },
    )
    const [, port] = await started.waitForOutput(/Server listening at http:\/\/127\.0\.0\.1:(\d+)/)
    await blocker.query('begin; lock table api_key in access exclusive mode')
    const url = `http://127.0.0.1:${port}`
    const readyz = async () => (await callService({ url }, { method: 'GET', path: '/readyz' })).status
    const isWaiting = async () =>
      (await blocker.query(`select 1 from pg_locks where not granted and relation = 'api_key'::regclass`)).rowCount
    await waitFor('a start that waits for the key', async () => Boolean(await isWaiting()))
    expect(await readyz()).toBe(503)
    await blocker.query('rollback')
    await waitFor('readiness', async () => (await readyz()) === 200)
    const token = (await readFile(join(dataDir, 'demo-token'), 'utf8')).trim()
    const answer = await callService({ url, token }, { method: 'GET', path: '/api/v3/webhook/webhook' })
    expect(answer.status).toBe(200)
    await started.waitForOutput(/Stop with Ctrl-C\./)
  } finally {
    blocker.release(true)
    await rm(dataDir, { recursive: true, force: true })
  }
})
