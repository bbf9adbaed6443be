import { lstat, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createTestApp, type TestAppOptions } from '../../../test/harness/app/app.ts'
import { runPasted } from '../../../test/harness/process/pasted-command.ts'
import { PROJECT_ROOT } from '../../../test/harness/process/process.ts'
import { FatalError } from '../../app/log/fatal.ts'
import { systemRandom } from '../../base/random.ts'
import { createSecret } from '../../outbound/signature.ts'
import { runDemo } from './demo.ts'
import { buildDemoClient } from './demo-client.ts'

/** A service in development that listens, and delivers while the demonstration waits. */
async function startFixture(options: TestAppOptions = {}) {
  const app = await createTestApp({
    ...options,
    env: { APP_ENV: 'development', SIGNALBOX_ROLES: 'api', ...options.env },
    lookup: async () => ['127.0.0.1'],
  })
  const key = await app.admin('POST', '/api/v3/identity/api-key', { name: 'demo', permissions: ['*:*'] })
  await app.app.start()
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox demo's "))
  const printed: string[] = []
  return {
    app,
    dataDir,
    printed,
    call: app.callAs(key.body.data.key),
    run: (waiting: () => Promise<unknown> = () => app.settle()) =>
      runDemo({
        baseUrl: app.app.baseUrl(),
        jwt: key.body.data.key,
        dataDir,
        isQueueEnabled: options.env?.ENABLE_API_EVENT_QUEUE !== 'false',
        clock: { now: app.clock.now, sleep: async () => void (await waiting()) },
        print: (line) => void printed.push(line),
      }),
    count: async (table: string) => (await app.database.pool.query(`select from ${table}`)).rowCount,
    [Symbol.asyncDispose]: async () => {
      await rm(dataDir, { recursive: true, force: true })
      await app[Symbol.asyncDispose]()
    },
  }
}

test('makes a change, and shows its event, attempt, answer of the sink and ledger row', async () => {
  await using fixture = await startFixture()
  const commands = await fixture.run()
  const text = fixture.printed.join('\n')
  const [row] = (await fixture.call('GET', '/api/v3/webhook/dispatch?filters=event|eq|contract.update')).body.data
  expect(row).toMatchObject({ status: 'success', attempts: 1, last_status_code: 200 })
  expect(text).toMatch(/change {4}PATCH \/api\/v3\/contract\/contract\/[0-9a-f-]{36} {2}status = active/)
  expect(text).toContain(`event     contract.update  ${row.event_id}`)
  expect(text).toMatch(/attempt {3}1 {2}200 {2}\d+ ms/)
  expect(text).toMatch(/sink {6}\{"data":\{"accepted":true\}/)
  expect(text).toContain(`ledger    ${row.document_id}  success  attempts = 1`)
  const { account } = (await fixture.call('GET', '/api/v3/contract/contract')).body.data[0]
  expect(text).toContain(`realtime  published on private-account-${account}, private-contract-`)
  expect(commands).toHaveLength(3)
  expect(commands.join('\n')).toContain(`/api/v3/webhook/dispatch/${row.document_id}`)
})

test('reuses its rows at the next start, and shows a new change', async () => {
  await using fixture = await startFixture()
  await fixture.run()
  const tables = ['account', 'contract', 'webhook', 'webhook_event']
  const before = await Promise.all(tables.map(fixture.count))
  const [contract] = (await fixture.call('GET', '/api/v3/contract/contract')).body.data
  await fixture.call('PATCH', `/api/v3/contract/contract/${contract.document_id}`, { name: 'Changed by hand' })
  await fixture.app.settle()
  fixture.printed.length = 0
  fixture.app.clock.advance(60_000)
  await fixture.run()
  expect(await Promise.all(tables.map(fixture.count))).toEqual(before)
  expect(fixture.printed.join('\n')).toContain('status = draft')
  const rows = (await fixture.call('GET', '/api/v3/webhook/dispatch?filters=event|eq|contract.update')).body.data
  expect(fixture.printed.join('\n')).toContain(`ledger    ${rows[0].document_id}  success`)
})

test('repairs its webhook that was deactivated, unsubscribed, or has the port of an earlier start', async () => {
  await using fixture = await startFixture()
  await fixture.run()
  const [webhook] = (await fixture.call('GET', '/api/v3/webhook/webhook')).body.data
  await fixture.app.database.pool.query(
    `update webhook set is_actived = false, url = 'http://localhost:1/api/v3/webhook/sink'`,
  )
  await fixture.app.database.pool.query('update webhook_event set deleted_at = now()')
  fixture.app.clock.advance(60_000)
  await fixture.run()
  const [mended] = (await fixture.call('GET', '/api/v3/webhook/webhook')).body.data
  expect(mended).toMatchObject({ document_id: webhook.document_id, is_actived: true, url: webhook.url })
  expect(fixture.printed.join('\n')).toMatch(/ {2}success {2}attempts = 1\n.*\n$/)
})

test('the key for the commands is in a file that only its owner can read, and the next start keeps it', async () => {
  await using fixture = await startFixture()
  const file = join(fixture.dataDir, 'demo-token')
  const commands = await fixture.run()
  for (const command of commands) expect(command).toContain(`$(cat '${file.replaceAll("'", "'\\''")}')`)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  const read = async () => (await readFile(file, 'utf8')).trim()
  const use = async (key: string) => (await fixture.app.callAs(key)('GET', '/api/v3/webhook/webhook')).status
  const first = await read()
  expect(await use(first)).toBe(200)
  await fixture.run()
  expect(await read()).toBe(first)
  fixture.app.clock.advance(6 * 24 * 3_600_000)
  await fixture.run()
  expect(await read(), 'valid for exactly a day more').toBe(first)
  fixture.app.clock.advance(1)
  await fixture.run()
  const second = await read()
  expect([second === first, await use(first), await use(second)]).toEqual([false, 401, 200])
  fixture.app.clock.advance(7 * 24 * 3_600_000 - 1)
  expect(await use(second)).toBe(200)
  fixture.app.clock.advance(1)
  expect(await use(second)).toBe(401)
  expect([...fixture.printed, ...commands].join('\n')).not.toContain(second)
})

test.each([
  ['of another key', `sbx_${'A'.repeat(43)}`],
  ['of nothing', ''],
])('a file with the token %s is replaced, and so is one whose key was revoked', async (_what, text) => {
  await using fixture = await startFixture()
  const file = join(fixture.dataDir, 'demo-token')
  const use = async () => {
    const key = (await readFile(file, 'utf8')).trim()
    return (await fixture.app.callAs(key)('GET', '/api/v3/webhook/webhook')).status
  }
  await fixture.run()
  await writeFile(file, text)
  await fixture.run()
  expect(await use()).toBe(200)
  await fixture.app.database.pool.query(`update api_key set revoked_at = created_at where name = 'npm start'`)
  fixture.app.clock.advance(2_000)
  await fixture.run()
  expect(await use()).toBe(200)
})

test('a link in place of the token is replaced, and what it leads to stays as it is', async () => {
  await using fixture = await startFixture()
  const target = join(fixture.dataDir, 'a file of somebody')
  await writeFile(target, 'theirs', { mode: 0o644 })
  await symlink(target, join(fixture.dataDir, 'demo-token'))
  await fixture.run()
  expect(await readFile(target, 'utf8')).toBe('theirs')
  const made = await lstat(join(fixture.dataDir, 'demo-token'))
  expect([made.isFile(), made.mode & 0o777]).toEqual([true, 0o600])
})

test('with the event queue off it makes the change, says why nothing is sent, and shows a working command', async () => {
  await using fixture = await startFixture({ env: { ENABLE_API_EVENT_QUEUE: 'false' } })
  const commands = await fixture.run()
  expect(fixture.printed.join('\n')).toMatch(
    /change {4}PATCH .*status = active\n\nNothing is sent: ENABLE_API_EVENT_QUEUE is false/,
  )
  expect(commands).toHaveLength(1)
  expect(JSON.parse(await runPasted(commands[0]!, PROJECT_ROOT))).toMatchObject({ data: { name: 'Changed by hand' } })
  expect(await fixture.count('event_occurrence')).toBe(0)
})

test('a missing delivery is reported after 15 s, with the likely reason', async () => {
  await using fixture = await startFixture()
  const run = fixture.run(async () => fixture.app.clock.advance(1_000))
  await expect(run).rejects.toThrow(FatalError)
  await expect(run).rejects.toThrow(/not posted within 15 s.*SIGNALBOX_ROLES/)
})

test('a delivery that the sink refuses is reported at once with its attempt', async () => {
  await using fixture = await startFixture({ env: { WEBHOOK_SINK_SECRET: createSecret(systemRandom) } })
  await expect(fixture.run()).rejects.toThrow(/not accepted by the sink/)
  expect(fixture.printed.join('\n')).toMatch(/attempt {3}1 {2}401/)
})

test('the error of a failed call has the call, the status and the detail of the problem', async () => {
  const server = createServer((_request, response) => {
    response.writeHead(503, { 'content-type': 'application/problem+json' })
    response.end('{"detail":"The database does not answer."}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const client = buildDemoClient(`http://127.0.0.1:${port}`, 'key')
  const call = client.call('GET', '/api/v3/x')
  await expect(call).rejects.toThrow(
    new FatalError('The demonstration failed: GET /api/v3/x answered 503. The database does not answer.'),
  )
  server.close()
})
