import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { buildKeyring } from '../../src/base/keyring.ts'
import { systemRandom } from '../../src/base/random.ts'
import { prepareForTest } from '../harness/app/prepared-database.ts'
import { TEST_METRICS_TOKEN } from '../harness/app/test-secrets.ts'
import { createTestDatabase } from '../harness/database/database.ts'
import { startReceiver } from '../harness/fakes/receiver.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { listBlocks } from '../harness/process/guide-shell.ts'
import { startHere } from '../harness/process/local-start.ts'
import { PROJECT_ROOT, startProcess } from '../harness/process/process.ts'
import { buildServiceEnvironment, callService, isReady } from '../harness/process/service-process.ts'
import { buildManualClock } from '../harness/run/manual-clock.ts'
import { waitFor } from '../harness/run/wait.ts'

/** Instructions of docs/operations.md for operators, with commands, and a real process for the start with a flag. */

const MAIN = join(PROJECT_ROOT, 'src', 'main.ts')
const OLD = 'an-old-key-of-at-least-thirty-two-bytes'
const NEW = 'a-new-key-of-at-least-thirty-two-bytes'
const idOf = (secret: string) => buildKeyring([secret], systemRandom).keyIds[0] ?? ''

/** A database with one webhook whose secret is sealed under `OLD`. */
async function startFixture() {
  const database = await createTestDatabase()
  await prepareForTest(database, buildManualClock())
  const id = '01990000-0000-7000-8000-000000000001'
  const now = new Date()
  const sealed = buildKeyring([OLD], systemRandom).seal('whsec_x', `webhook:${id}`)
  const row = { document_id: id, url: 'https://hooks.example.com/', is_global: true, secret_encrypted: sealed }
  await database.db
    .insertInto('webhook')
    .values({ ...row, created_at: now, updated_at: now })
    .execute()
  const environment = (secretKey: string) => ({
    ...buildServiceEnvironment(database.connectionString),
    SECRET_KEY: secretKey,
  })
  return {
    database,
    id,
    environment,
    runCommand: (args: string[], secretKey: string) => runCommand(args, { env: environment(secretKey) }),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

test('a rotation of SECRET_KEY is followed by commands from its start to its shown end', async () => {
  await using fixture = await startFixture()
  const before = await fixture.runCommand(['secrets', 'status'], `${NEW},${OLD}`)
  expect(before.code).toBe(1)
  expect(before.stdout).toContain(`SECRET_KEY seals under ${idOf(NEW)}, and opens ${idOf(OLD)} too.`)
  expect(before.stdout).toMatch(new RegExp(`^webhook +${idOf(OLD)} +1 +older key$`, 'm'))
  expect(before.stdout).toContain('1 secrets are sealed under an older key. Run: signalbox secrets reencrypt.')
  const during = await fixture.runCommand(['secrets', 'reencrypt'], `${NEW},${OLD}`)
  expect(during.stdout).toContain('webhook: 1 sealed anew')
  expect(during.stdout).toContain('The rotation has ended: remove the older keys from SECRET_KEY')
  expect(during.code).toBe(0)
  const after = await fixture.runCommand(['secrets', 'status'], NEW)
  expect(after.code).toBe(0)
  expect(after.stdout).toContain('Every stored secret is sealed under the only key.')
  expect(`${before.stdout}${during.stdout}${after.stdout}`).not.toContain(NEW)
})

test('a wrong SECRET_KEY stops the start with the remedy', async () => {
  await using fixture = await startFixture()
  const refused = await fixture.runCommand(['serve'], NEW)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain('secret_key_mismatch: SECRET_KEY opens none of the 1 secrets in the database.')
  expect(refused.stderr).toContain('see docs/operations.md, secret_key_mismatch')
})

test('a started service says where it listens, shows what it is, and posts an alert that begins and ends', async () => {
  await using fixture = await startFixture()
  await using alerts = await startReceiver()
  await using service = startHere({ ...fixture.environment(OLD), ALERT_WEBHOOK_URL: `${alerts.origin}/alerts` })
  const [, port] = await service.waitForOutput(/Signalbox listens on http:\/\/127\.0\.0\.1:(\d+), as /)
  const url = `http://127.0.0.1:${port}`
  const line = /^.*"msg":"service started".*$/m.exec(service.logged())?.[0] ?? '{}'
  expect(JSON.parse(line)).toMatchObject({
    ...{ level: 'info', address: '127.0.0.1', port: Number(port), app_env: 'test' },
    roles: ['api', 'dispatcher', 'realtime', 'provisioning', 'maintenance'],
  })
  expect(await isReady(url)).toBe(true)
  const headers = { authorization: `Bearer ${TEST_METRICS_TOKEN}` }
  const metrics = await callService({ url }, { method: 'GET', path: '/metrics', headers })
  expect(metrics.body).toContain('signalbox_role{role="dispatcher"} 1\n')
  expect(metrics.body).toContain('stored_secrets_unreadable 0\n')
  await fixture.database.pool.query(
    `insert into alert_incident (document_id, incident, subject, summary, since, due_at)
     values (gen_random_uuid(), 'webhook-disabled', $1, 'disabled', now(), now())`,
    [fixture.id],
  )
  const posted = () => alerts.requests.map(({ body }) => JSON.parse(body.toString()).status)
  // The webhook is active, so the check of the service ends the incident.
  await waitFor('both alerts', () => posted().length === 2)
  expect(posted()).toEqual(['firing', 'resolved'])
})

test('a service starts without its key by the command of the first checks, whose alert ends under that key', {
  timeout: 240_000,
}, async () => {
  const page = await readFile(join(PROJECT_ROOT, 'docs/operations.md'), 'utf8')
  const commands = listBlocks(page).map(({ text }) => text)
  const command = commands.filter((text) => /^SECRET_KEY=.*serve/.test(text))
  expect(command).toHaveLength(1)
  await using fixture = await startFixture()
  await using alerts = await startReceiver()
  const env = { ...fixture.environment(OLD), ALERT_WEBHOOK_URL: `${alerts.origin}/alerts` }
  const posted = () => alerts.requests.map(({ body }) => JSON.parse(body.toString()))
  {
    const script = (command[0] ?? '').replace('npx signalbox', `exec '${process.execPath}' '${MAIN}'`)
    await using trial = startProcess({ command: '/bin/sh', args: ['-c', script], env })
    const [, port] = await trial.waitForOutput(/Signalbox listens on http:\/\/127\.0\.0\.1:(\d+), as /)
    await waitFor('the alert', () => posted().length === 1, { limitMs: 60_000 })
    expect(posted()).toMatchObject([{ incident: 'secret-unreadable', status: 'firing' }])
    const path = '/api/v3/health/component/stored-secrets'
    const { body } = await callService({ url: `http://127.0.0.1:${port}` }, { method: 'GET', path })
    expect(body.data).toMatchObject({ status: 'degraded', details: { unreadable: 1, missing_keys: [idOf(OLD)] } })
    trial.signal('SIGTERM')
    expect(await trial.ended).toMatchObject({ code: 0 })
  }
  // Five minutes later.
  await fixture.database.pool.query(`update alert_incident set since = since - interval '5 minutes'`)
  await using own = startHere(env)
  await own.waitForOutput(/Signalbox listens on /)
  await waitFor('the end of the incident', () => posted().length === 2, { limitMs: 60_000 })
  expect(posted()[1]).toMatchObject({ incident: 'secret-unreadable', status: 'resolved' })
})
