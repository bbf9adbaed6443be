import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { expect, test } from 'vitest'
import { buildLogEnvironment, STREAM } from '../harness/carriage/event-log-service.ts'
import { createTestDatabase } from '../harness/database/database.ts'
import { openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { findNatsServer } from '../harness/nats/nats-program.ts'
import { startNatsServers } from '../harness/nats/nats-servers.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { listBlocks, openGuideShell } from '../harness/process/guide-shell.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

/** The permissions of docs/operations/event-log.md#servers as they stand. */

const program = await findNatsServer('the permissions of the event log are not tried')

const BUS = {
  ...{ INTEGRATION_REALTIME_APP_ID: 'app', INTEGRATION_REALTIME_KEY: 'key', INTEGRATION_REALTIME_SECRET: 'secret' },
  ...{ INTEGRATION_REALTIME_CLUSTER: 'embedded', REALTIME_BUS_SUBJECT: 'signalbox.realtime' },
}

async function readLines(): Promise<string> {
  const page = await readFile(join(PROJECT_ROOT, 'docs/operations/event-log.md'), 'utf8')
  const [lines = '', ...others] = listBlocks(page)
    .map(({ text }) => text)
    .filter((text) => text.startsWith('authorization {'))
  expect(others).toEqual([])
  return lines
}

test('those of the reader are enough for the consumer of the guide, also after a restart of the server, and for no more', async () => {
  const lines = await readLines()
  const guide = listBlocks(await readFile(join(PROJECT_ROOT, 'docs/guides/event-log.md'), 'utf8'))
  const consumer = guide.find(({ language }) => language === 'js')?.text ?? ''
  if (!program) return
  await using servers = await startNatsServers({ program, lines })
  const [node] = servers.nodes
  await using database = await createTestDatabase({ content: 'prepared', isOwn: true })
  await using fixture = await openDeliveryFixture(database)
  const url = servers.url.replace('nats://', 'nats://signalbox:password-of-signalbox@')
  const service = await fixture.startLocal({ env: buildLogEnvironment(url) })
  const first = await fixture.change(service)
  await waitFor('an empty outbox', async () => (await database.pool.query('select from event_outbox')).rowCount === 0)
  const login = { NATS_URL: servers.url, NATS_USER: 'reader', NATS_PASSWORD: 'password-of-reader' }
  await using shell = await openGuideShell({ ...login, SINCE: new Date(Date.now() - 60_000).toISOString() })
  await writeFile(join(shell.checkout, 'consumer.mjs'), consumer)
  await shell.run('node consumer.mjs & echo started')
  await shell.waitForOutput(new RegExp(`"id":"${first}"`))
  await node?.kill()
  await node?.start()
  const second = await fixture.change(service)
  await shell.waitForOutput(new RegExp(`"id":"${second}"`))

  const reader = { user: 'reader', pass: 'password-of-reader', inboxPrefix: '_INBOX_reader' }
  const connection = await connect({ servers: servers.url, ...reader })
  try {
    const { consumers } = await jetstreamManager(connection, { checkAPI: false })
    const refused = (what: Promise<unknown>) => expect(what).rejects.toThrow(/permissions violation/i)
    await refused(consumers.delete(STREAM, 'reader'))
    await refused(consumers.add(STREAM, { durable_name: 'other', filter_subject: 'ev.>' }))
    await refused(connection.request(`$JS.API.STREAM.PURGE.${STREAM}`, '', { timeout: 10_000 }))
    await refused(connection.request(`ev.none.contract.delete`, 'forged', { timeout: 10_000 }))
  } finally {
    await connection.close()
  }
})

test('the permissions of the page are enough for the service, its bus and its commands, and doctor names one that is missing', async () => {
  const lines = await readLines()
  if (!program) return
  await using servers = await startNatsServers({ program, lines })
  await using database = await createTestDatabase({ content: 'prepared', isOwn: true })
  await using fixture = await openDeliveryFixture(database)
  const urlOf = (url: string) => url.replace('nats://', 'nats://signalbox:password-of-signalbox@')
  const env = { ...buildLogEnvironment(urlOf(servers.url)), EVENT_LOG_MONITOR_URLS: servers.monitorUrls, ...BUS }
  const service = await fixture.startLocal({ env })
  const id = await fixture.change(service)
  await waitFor('an empty outbox', async () => (await database.pool.query('select from event_outbox')).rowCount === 0)
  const run = (args: string[], given = {}) =>
    runCommand(args, { env: { ...buildServiceEnvironment(database.connectionString), ...env, ...given } })
  const read = await run(['log', 'read', '--since', '2026-01-01T00:00:00Z', '--type', 'contract.create'])
  expect([read.code, read.stdout]).toEqual([0, expect.stringContaining(id)])
  expect((await run(['log', 'status'])).code).toBe(0)
  const examine = async (given = {}) => {
    const { areas } = JSON.parse((await run(['doctor', '--json'], given)).stdout) as {
      areas: { area: string; findings: { code: string; detail: string }[] }[]
    }
    return areas.find(({ area }) => area === 'event_log')?.findings ?? []
  }
  expect(await examine()).toEqual([])

  const narrowed = async (taken: string) => {
    expect(lines).toContain(taken)
    await using narrow = await startNatsServers({ program, lines: lines.replace(taken, '') })
    return await examine({ EVENT_LOG_URL: urlOf(narrow.url), EVENT_LOG_MONITOR_URLS: narrow.monitorUrls })
  }
  const noInbox = await narrowed('"_INBOX.>", ')
  expect(noInbox[0]).toMatchObject({ code: 'event_log_refused', detail: expect.stringMatching(/violation.*_INBOX/i) })
  const noInfo = await narrowed('"$JS.API.STREAM.INFO.signalbox-events"')
  expect(noInfo[0]).toMatchObject({ code: 'event_log_refused', detail: expect.stringMatching(/violation.*INFO/i) })
  const noLogin = await examine({ EVENT_LOG_URL: servers.url })
  expect(noLogin[0]).toMatchObject({ code: 'event_log_refused', detail: expect.stringMatching(/authorization/i) })
})
