import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { type ReceivedRequest, type Receiver, startReceiver } from '../harness/fakes/receiver.ts'
import { createAuthority } from '../harness/fakes/tls.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { startProcess, type TestProcess } from '../harness/process/process.ts'
import { buildServiceEnvironment, type ServiceProcess, startService } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

const EMAIL = 'operator@example.com'
const PASSWORD = 'correct horse battery'
const LIBRARIES = ['stripe', 'standardwebhooks', 'svix', '@signalbox/webhooks']

let database: TestDatabase
let receiver: Receiver
let service: ServiceProcess
let directory: string
let verifier: TestProcess
let jwt: string

/** A real setup: processes, sockets, HTTPS, the system's clock. */
beforeAll(async () => {
  const authority = await createAuthority()
  directory = await mkdtemp(join(tmpdir(), 'signalbox journey '))
  const caFile = join(directory, 'ca.pem')
  await writeFile(caFile, authority.ca)
  verifier = startProcess({ args: [join(import.meta.dirname, 'verify-with-libraries.ts')] })
  database = await createTestDatabase()
  receiver = await startReceiver({ tls: await authority.issue(['127.0.0.1']) })
  await createAdministrator()
  service = await startService({
    databaseUrl: database.connectionString,
    token: '',
    env: { NODE_EXTRA_CA_CERTS: caFile, WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}` },
  })
})
afterAll(async () => {
  await service?.[Symbol.asyncDispose]()
  await verifier?.[Symbol.asyncDispose]()
  await receiver?.close()
  await database?.[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

async function createAdministrator() {
  const env = { ...buildServiceEnvironment(database.connectionString), SIGNALBOX_ADMIN_PASSWORD: PASSWORD }
  const ended = await runCommand(['admin', 'create', '--email', EMAIL], { env })
  expect(ended, ended.stderr).toMatchObject({ code: 0 })
}

async function call(method: string, path: string, body?: unknown) {
  const answer = await service.call(method, path, body, { authorization: `Bearer ${jwt}` })
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer.body.data
}

async function signIn() {
  const login = await service.call('POST', '/api/v3/auth/login/local', { email: EMAIL, password: PASSWORD })
  expect(login.status).toBe(200)
  jwt = login.body.data.jwt
}

let verified = 0

/** The verdict of each library on a delivery, in a process of its own. */
async function verifyElsewhere(request: ReceivedRequest, secret: string) {
  const delivery = { headers: request.headers, body: request.body.toString('base64'), secret }
  verifier.type(`${JSON.stringify(delivery)}\n`)
  verified += 1
  const [, line = ''] = await verifier.waitForOutput(new RegExp(`^(?:.*\\n){${verified - 1}}(.*)\\n`))
  return JSON.parse(line) as Record<string, { ok: boolean; envelope?: unknown }>
}

test('sign in, create a webhook, subscribe, change something: the delivery is verified by every public library, the ledger says success', async () => {
  await signIn()
  const account = (await call('POST', '/api/v3/identity/account', { name: 'Acme' })).document_id
  const webhook = await call('POST', '/api/v3/webhook/webhook', { url: `${receiver.origin}/hook`, account })
  const [event] = await call('GET', '/api/v3/webhook/event?filters=internal|eq|contract.create')
  await call('PUT', `/api/v3/webhook/webhook/${webhook.document_id}/events`, { events: [event.document_id] })
  const contract = await call('POST', '/api/v3/contract/contract', { account, name: 'Lease' })

  const [request] = (await receiver.waitFor(1, 60_000)) as [ReceivedRequest]
  const said = await verifyElsewhere(request, webhook.secret)
  expect(Object.keys(said)).toEqual(LIBRARIES)
  for (const library of LIBRARIES) {
    expect(said[library], library).toMatchObject({
      ok: true,
      envelope: {
        type: 'contract.create',
        api_version: '2026-09-11',
        attempt: 1,
        data: { account, id: contract.document_id },
      },
    })
  }
  await refuseWhatIsForged(request, webhook.secret)

  const path = `/api/v3/webhook/dispatch/${request.headers['x-service-delivery']}`
  await waitFor('the ledger row', async () => (await call('GET', path)).status === 'success')
  expect(await call('GET', path)).toMatchObject({
    webhook: webhook.document_id,
    event: 'contract.create',
    attempts: 1,
    last_status_code: 200,
    attempts_log: [{ attempt: 1, trigger: 'schedule', status_code: 200 }],
  })
  const read = JSON.parse(request.body.toString('utf8')).data.url
  expect(await call('GET', read)).toMatchObject({ document_id: contract.document_id, name: 'Lease' })
})

/** The same libraries refuse a changed body, another secret, and an old signature: they do verify. */
async function refuseWhatIsForged(request: ReceivedRequest, secret: string) {
  const body = Buffer.from(request.body.toString('utf8').replace('contract.create', 'contract.delete'))
  const other = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const stamp = String(Math.floor(Date.now() / 1000) - 301)
  const signature = request.headers['x-service-signature']?.replace(/t=\d+/, `t=${stamp}`) ?? ''
  const stale = { ...request.headers, 'x-service-signature': signature, 'webhook-timestamp': stamp }
  for (const said of [
    await verifyElsewhere({ ...request, body }, secret),
    await verifyElsewhere(request, other),
    await verifyElsewhere({ ...request, headers: stale }, secret),
  ])
    for (const library of LIBRARIES) expect(said[library], library).toMatchObject({ ok: false })
}

test('a rotated secret is the one that verifies the next delivery, and the old one verifies it no more', async () => {
  const seen = receiver.requests.length
  await signIn()
  const webhook = await call('POST', '/api/v3/webhook/webhook', { url: `${receiver.origin}/rotated`, is_global: true })
  const rotated = await call('POST', `/api/v3/webhook/webhook/${webhook.document_id}/rotate-secret`)
  await call('POST', `/api/v3/webhook/webhook/${webhook.document_id}/test`)
  const request = (await receiver.waitFor(seen + 1, 60_000)).at(-1) as ReceivedRequest
  const [fresh, old] = [await verifyElsewhere(request, rotated.secret), await verifyElsewhere(request, webhook.secret)]
  for (const library of LIBRARIES) expect([fresh[library]?.ok, old[library]?.ok], library).toEqual([true, false])
})
