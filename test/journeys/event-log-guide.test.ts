import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { STREAM } from '../harness/carriage/event-log-service.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { type DeliveryFixture, openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import type { Receiver } from '../harness/fakes/receiver.ts'
import { findNatsServer } from '../harness/nats/nats-program.ts'
import { type NatsServers, startNatsServers } from '../harness/nats/nats-servers.ts'
import { listBlocks, openGuideShell } from '../harness/process/guide-shell.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { limit, waitFor } from '../harness/run/wait.ts'

/** The blocks of docs/guides/event-log.md as they stand, but for the ports and the account. */

const GUIDE_ACCOUNT = '0190a5c0-0000-7000-8000-00000000000a'

const program = await findNatsServer('the guide of the event log is not run')
const blocks = listBlocks(await readFile(join(PROJECT_ROOT, 'docs/guides/event-log.md'), 'utf8'))
const blockWith = (part: string) => blocks.find(({ text }) => text.includes(part))?.text ?? ''

const LOGIN = { NATS_USER: 'signalbox', NATS_PASSWORD: 'password-of-signalbox' }

let servers: NatsServers
let database: TestDatabase
let fixture: DeliveryFixture
let service: LocalService
let receiver: Receiver
/** An account beside the tenant of the guide. */
let other: string

const urlOf = (user: string) => servers.url.replace('nats://', `nats://${user}:password-of-${user}@`)
const connectAs = (user: string) => {
  const [, port] = servers.url.split('nats://127.0.0.1:')
  const inbox = user === 'acme' ? { inboxPrefix: '_INBOX_acme' } : {}
  return connect({ servers: `127.0.0.1:${port}`, user, pass: `password-of-${user}`, ...inbox })
}

async function makeContract(account: string, name: string): Promise<void> {
  const made = await service.call('POST', '/api/v3/contract/contract', { name, account })
  expect(made.status).toBe(201)
}

beforeAll(async () => {
  if (!program) return
  database = await createTestDatabase({ content: 'prepared', isOwn: true })
  fixture = await openDeliveryFixture(database)
  const accounts = blockWith('accounts {').replaceAll(GUIDE_ACCOUNT, fixture.account)
  servers = await startNatsServers({ program, lines: accounts })
  // A private target, which a service is told at its start.
  receiver = await fixture.receive()
  const env = { EVENT_LOG_URL: urlOf('signalbox'), EVENT_LOG_MONITOR_URLS: servers.monitorUrls }
  service = await fixture.startLocal({ env })
  other = (await service.call('POST', '/api/v3/identity/account', { name: 'Other' })).body.data.document_id
})
afterAll(async () => {
  await fixture?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
  await servers?.[Symbol.asyncDispose]()
})

test('the server of the guide writes each event to disk, and every block of the guide is known here', () => {
  expect(blockWith('store_dir')).toContain('sync_interval: always')
  expect(blocks.map(({ language }) => language)).toEqual(['text', 'sh', 'sh', 'js', 'sh', 'sh', 'sh', 'text'])
})

test('the consumer of the guide prints what a webhook gets, with the same id', async () => {
  if (!program) return
  await fixture.subscribe(service, receiver)
  const since = new Date(Date.now() - 60_000).toISOString()
  await makeContract(fixture.account, 'One')
  await waitFor('the delivery', () => receiver.requests.length > 0)
  const body = receiver.requests[0]?.body.toString() ?? ''
  await using shell = await openGuideShell(LOGIN)
  await writeFile(join(shell.checkout, 'consumer.mjs'), blockWith('consumers.get'))
  const start = blockWith('node consumer.mjs')
    .replace(/NATS_URL=\S+/, `NATS_URL=${servers.url}`)
    .replace(/SINCE=\S+/, `SINCE=${since}`)
  await shell.run(`${start.trim()} & echo started`)
  const subject = `ev.${fixture.account}.contract.create`
  const [line] = await shell.waitForOutput(new RegExp(`^${subject} .*$`, 'm'))
  expect(line).toBe(`${subject} ${body}`)
})

test('a tenant gets its events as they come, and none of another one', async () => {
  if (!program) return
  await using live = await connectAs('acme-live').then((connection) => ({
    connection,
    [Symbol.asyncDispose]: () => connection.close(),
  }))
  const subjects: string[] = []
  live.connection.subscribe('>', { callback: (_error, { subject }) => void subjects.push(subject) })
  await live.connection.flush()
  await makeContract(other, 'Of another one')
  await makeContract(fixture.account, 'Of its own')
  await waitFor('the event', () => subjects.some((subject) => subject.endsWith('contract.create')))
  expect([...new Set(subjects.map((subject) => subject.split('.')[1]))]).toEqual([fixture.account])
  // What it publishes stays in its own account.
  live.connection.publish(`ev.${fixture.account}.contract.delete`, 'forged')
  await live.connection.flush()
  await using own = await connectAs('signalbox').then((connection) => ({
    connection,
    [Symbol.asyncDispose]: () => connection.close(),
  }))
  const { streams } = await jetstreamManager(own.connection)
  const info = await streams.info(STREAM, { subjects_filter: `ev.${fixture.account}.contract.delete` })
  expect(info.state.subjects ?? {}).toEqual({})
})

test('a tenant reads its events from the first on by its one consumer, and can do nothing else', async () => {
  if (!program) return
  await makeContract(fixture.account, 'Stored')
  await makeContract(other, 'Stored too')
  const waiting = async () => (await database.pool.query('select from event_outbox')).rowCount === 0
  await waitFor('an empty outbox', waiting)
  const connection = await connectAs('acme')
  try {
    const { consumers } = await jetstreamManager(connection, { checkAPI: false })
    const filter = `ev.${fixture.account}.>`
    await consumers.add(STREAM, { durable_name: 'acme', filter_subject: filter, ack_policy: AckPolicy.Explicit })
    const consumer = await jetstream(connection, { checkAPI: false }).consumers.get(STREAM, 'acme')
    const accounts = new Set<string | undefined>()
    for await (const message of await consumer.fetch({ max_messages: 2, expires: 5_000 })) {
      accounts.add(message.subject.split('.')[1])
      expect(await message.ackAck()).toBe(true)
    }
    expect([...accounts]).toEqual([fixture.account])

    const refused = async (what: () => Promise<unknown>) => {
      const outcome = await limit(what(), 60_000, 'a refusal').then(
        () => 'allowed',
        (error: Error) => error.message,
      )
      expect(outcome).toMatch(/permissions violation|timeout/i)
    }
    const add = (name: string, filter_subject: string) => () =>
      consumers.add(STREAM, { durable_name: name, filter_subject, ack_policy: AckPolicy.Explicit })
    await refused(add('acme', `ev.${other}.>`))
    await refused(add('acme', 'ev.>'))
    await refused(add('spy', filter))
    await refused(() => connection.request(`ev.${fixture.account}.contract.delete`, 'forged', { timeout: 2_000 }))
    await refused(() => connection.request(`$JS.API.STREAM.PURGE.${STREAM}`, '', { timeout: 2_000 }))
    await refused(() => connection.request(`$JS.API.STREAM.MSG.GET.${STREAM}`, '{"seq":1}', { timeout: 2_000 }))
    await refused(() => connection.request(`$JS.API.DIRECT.GET.${STREAM}`, '{"seq":1}', { timeout: 2_000 }))
    // A filter that its subject does not name: the server compares both.
    const create = `$JS.API.CONSUMER.CREATE.${STREAM}.acme.${filter}`
    const config = { durable_name: 'acme', filter_subject: 'ev.>', ack_policy: 'explicit' }
    const forged = { stream_name: STREAM, config: { ...config, name: 'acme' }, action: '' }
    const answer = (await connection.request(create, JSON.stringify(forged), { timeout: 5_000 })).json<{
      error?: object
    }>()
    expect(answer.error).toBeDefined()
  } finally {
    await connection.close()
  }
})
