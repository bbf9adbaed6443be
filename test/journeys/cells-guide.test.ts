import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { migrate } from '../../src/postgres/migration/migrate.ts'
import { startCellServers } from '../harness/carriage/cell-servers.ts'
import { buildLogEnvironment } from '../harness/carriage/event-log-service.ts'
import { openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { findNatsServer } from '../harness/nats/nats-program.ts'
import { startNatsServers } from '../harness/nats/nats-servers.ts'
import { listBlocks, openGuideShell } from '../harness/process/guide-shell.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

/** The blocks of docs/operations/cells.md#step-by-step as they stand, but for the account, addresses and the name of the user. */

const program = await findNatsServer('the steps to a cell and back are not run')
const FAR = { limitMs: 120_000 }

/** What `trigger contract.create` needs, by docs/guides/cli.md. */
const TRIGGERS = ['event-occurrence:*', 'webhook-dispatch:find-all', 'contract:*', 'account:find-all', 'account:create']

/** The superuser of the servers of tests is called signalbox: the user of the page is another one here, and none. */
const USER = 'tenant'

test('the steps to a cell and back work as they are written, for users who are no superusers', async () => {
  const page = await readFile(join(PROJECT_ROOT, 'docs/operations/cells.md'), 'utf8')
  const [, steps = ''] = /^## Step by step$([\s\S]*?)^## /m.exec(page) ?? []
  const [ofHome, ofCell, add, move, back, ...others] = listBlocks(steps)
  expect([ofHome, ofCell, add, move, back].map((block) => block?.language)).toEqual(['sql', 'sql', 'sh', 'sh', 'sh'])
  expect(others).toEqual([])
  if (!program) return
  await using nats = await startNatsServers({ program, size: 1 })
  await using servers = await startCellServers()
  const [home, cell] = [servers.open(servers.home), servers.open(servers.cell)]
  const urlOf = (server: string, password: string, name: string) => {
    const url = new URL(server)
    Object.assign(url, { username: USER, password, pathname: `/${name}` })
    return url.href
  }
  const runSql = async (pool: typeof home.pool, text = '') => {
    for (const line of text.split(';\n')) if (line.trim()) await pool.query(line.replaceAll('signalbox', USER))
  }
  await runSql(home.pool, `create role signalbox login password 'own';\ncreate database signalbox owner signalbox;\n`)
  const databaseUrl = urlOf(servers.home, 'own', USER)
  await migrate(databaseUrl)
  await using fixture = await openDeliveryFixture(servers.open(databaseUrl))
  const [receiver, globalReceiver] = [await fixture.receive(), await fixture.receive()]
  const env = buildLogEnvironment(nats.url)
  const service = await fixture.startLocal({ env })
  const found = await service.call('GET', '/api/v3/webhook/event?filters=internal%7Ceq%7Ccontract.create')
  const events = found.body.data.map((event: { document_id: string }) => event.document_id)
  const subscribe = async (body: object) => {
    const made = await service.call('POST', '/api/v3/webhook/webhook', body)
    const webhook: string = made.body.data.document_id
    expect((await service.call('PUT', `/api/v3/webhook/webhook/${webhook}/events`, { events })).status).toBe(200)
    return webhook
  }
  await subscribe({ url: `${receiver.origin}/`, account: fixture.account, name: 'Own' })
  const deliver = async (count: number) => {
    await fixture.change(service)
    await waitFor(`delivery ${count}`, () => receiver.requests.length === count, FAR)
  }
  await deliver(1)

  await runSql(home.pool, ofHome?.text)
  await runSql(cell.pool, ofCell?.text)
  await using shell = await openGuideShell({ ...buildServiceEnvironment(databaseUrl), ...env })
  const run = (text = '') =>
    shell.run(
      text
        .replaceAll('0190a5c0-0000-7000-8000-00000000000a', fixture.account)
        .replaceAll('signalbox:password', `${USER}:password`)
        .replaceAll('cell.example:5432', new URL(servers.cell).host),
    )
  await shell.install()
  const [adding = '', status = ''] = (add?.text ?? '').split(/^(?=npx signalbox cell status)/m)
  expect(await run(adding)).toContain('The cell c1 is active.')
  // Processes use it within some seconds: until then there is something to do.
  const printed = await waitFor('a status without remedies', () => run(status).catch(() => undefined), FAR)
  expect(printed).toContain('"remedies": []')
  expect(await run(move?.text)).toContain('Moved, with')
  await deliver(2)
  // A global webhook is in home, which takes the event in from the cell.
  const global = await subscribe({ url: `${globalReceiver.origin}/`, is_global: true })
  const key = await service.call('POST', '/api/v3/identity/api-key', { name: 'Trigger', permissions: TRIGGERS })
  const caller = `SIGNALBOX_URL=${service.url} SIGNALBOX_TOKEN=${key.body.data.key}`
  const triggered = await run(`(export ${caller}; npx signalbox trigger contract.create --account ${fixture.account})`)
  expect(triggered).toMatch(new RegExp(`^dispatch .* success .* webhook ${global}$`, 'm'))
  const { rows } = await servers
    .open(urlOf(servers.cell, 'password-of-the-cell', 'c1'))
    .pool.query('select event from event_occurrence where origin is not null')
  expect(rows).toEqual([{ event: 'contract.create' }, { event: 'contract.create' }])
  expect(await run(back?.text)).toContain('The cell c1 is removed.')
  await deliver(4)
  const { rows: slots } = await home.pool.query('select slot_name from pg_replication_slots')
  expect(slots).toEqual([])
}, 400_000)
