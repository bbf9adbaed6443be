import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { keyOf } from '../../src/command/import/history.ts'
import { limit, waitFor } from '../harness/run/wait.ts'
import { SOURCE_TOKEN, type SourceSimulator, type SvixEndpoint, startSvix } from './import-simulators.ts'
import { type CliFixture, openCliFixture } from './receiver-cli-fixture.ts'

let fixture: CliFixture
let folder: string
beforeAll(async () => {
  fixture = await openCliFixture()
  folder = await mkdtemp(join(tmpdir(), 'signalbox import '))
})
afterAll(async () => {
  await fixture?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

let count = 0
/** A text that no other test of this file has. */
function unique(prefix: string): string {
  count += 1
  return `${prefix}_${count}`
}
const makeSecret = (length = 24) => `whsec_${randomBytes(length).toString('base64')}`

function makeEndpoint(members: Record<string, unknown> = {}, more: Partial<SvixEndpoint> = {}): SvixEndpoint {
  const id = unique('ep')
  const url = `${fixture.receiver.origin}/${id}?token=of-the-url`
  const endpoint = {
    id,
    url,
    description: '',
    disabled: false,
    filterTypes: ['contract.update'],
    metadata: {},
    ...members,
  }
  return { endpoint, key: makeSecret(), ...more }
}

const makeApp = (endpoints: SvixEndpoint[], name = 'Acme') => ({
  app: { id: unique('app'), name, metadata: {} },
  endpoints,
})

async function writeMap(map: unknown): Promise<string> {
  const path = join(folder, unique('map'))
  await writeFile(path, typeof map === 'string' ? map : JSON.stringify(map))
  return path
}

const importSvix = (source: { origin: string }, args: string[] = [], env: Record<string, string> = {}) =>
  fixture.run(['import', 'svix', '--from', source.origin, ...args], { SIGNALBOX_IMPORT_TOKEN: SOURCE_TOKEN, ...env })

async function readReport(source: { origin: string }, args: string[] = []) {
  const ended = await importSvix(source, [...args, '--json'])
  return { ...ended, report: JSON.parse(ended.stdout) }
}

/** The webhooks of an account, the oldest first, with their event types. */
async function listWebhooks(account: string) {
  const { admin } = fixture.service
  const listed = await admin(
    'GET',
    `/api/v3/webhook/webhook?filters=account|eq|${account}&sort=created_at&page_size=200`,
  )
  const rows = []
  for (const row of listed.body.data) {
    const set = await admin('GET', `/api/v3/webhook/webhook/${row.document_id}/events`)
    rows.push({ ...row, events: set.body.data.events.map(({ internal }: { internal: string }) => internal).sort() })
  }
  return rows
}

const countWebhooks = async () =>
  (await fixture.service.admin('GET', '/api/v3/webhook/webhook?count=true&page_size=1')).body.pagination.total

const isReadOnly = ({ requests }: SourceSimulator) => requests.every((line) => line.startsWith('GET '))

test('applications become accounts, endpoints webhooks, and receivers verify with the secret and libraries they have', async () => {
  const first = makeEndpoint(
    { uid: 'billing', description: 'Invoices', filterTypes: ['contract.update', 'invoice.paid'] },
    { headers: { 'X-Tenant': 'acme' } },
  )
  const off = makeEndpoint({ disabled: true, filterTypes: null, eventTypes: ['contract.create'], throttleRate: 10 })
  // Two applications of one name stay two accounts.
  const apps = [makeApp([first, off]), makeApp([makeEndpoint()])]
  await using source = await startSvix(apps)
  const map = await writeMap({ 'invoice.paid': ['contract.create', 'contract.update'] })

  const before = await countWebhooks()
  const dry = await importSvix(source, ['--events', map])
  expect(dry).toMatchObject({ code: 0, stderr: '' })
  expect(dry.stdout).toContain('accounts: 2 would create; webhooks: 3 would create')
  expect(dry.stdout).toContain('Dry run: nothing was changed. Add --apply to import.')
  expect(dry.stdout).not.toContain('of-the-url')
  expect(await countWebhooks()).toBe(before)

  const made = await readReport(source, ['--events', map, '--apply'])
  expect(made).toMatchObject({ code: 0, stderr: '', report: { counts: { created: 5 }, is_dry_run: false } })
  const [firstAccount, secondAccount] = made.report.accounts
  expect(firstAccount.account).not.toBe(secondAccount.account)
  expect(firstAccount.name).toBe(`Acme (svix ${apps[0]!.app.id})`)
  const webhooks = await listWebhooks(firstAccount.account)
  expect(webhooks).toMatchObject([
    {
      url: first.endpoint.url,
      name: 'billing',
      description: 'Invoices',
      header_names: ['x-tenant'],
      is_actived: true,
      events: ['contract.create', 'contract.update', 'webhook.test'],
    },
    { url: off.endpoint.url, is_actived: false, max_per_second: 10, events: ['contract.create', 'webhook.test'] },
  ])
  for (const secret of [first.key, first.key.slice(6), SOURCE_TOKEN]) expect(made.stdout).not.toContain(secret)

  const body = { name: 'A contract', account: firstAccount.account }
  await fixture.service.admin('POST', '/api/v3/contract/contract', body)
  await fixture.service.settle()
  const delivered = fixture.receiver.requests.filter(({ path }) => path.startsWith(`/${first.endpoint.id}`))
  expect(delivered).toHaveLength(1)
  const { headers, body: raw } = delivered[0]!
  expect(headers['x-tenant']).toBe('acme')
  // The libraries judge the time by the clock of the machine, which that of the service is a day apart from.
  vi.useFakeTimers({ toFake: ['Date'], now: Number(headers['webhook-timestamp']) * 1000 })
  try {
    new StandardWebhook(first.key).verify(raw.toString('utf8'), headers)
    new SvixWebhook(first.key).verify(raw, headers)
    expect(() => new SvixWebhook(off.key).verify(raw, headers)).toThrow(/signature/i)
  } finally {
    vi.useRealTimers()
  }
  expect(fixture.receiver.requests.filter(({ path }) => path.startsWith(`/${off.endpoint.id}`))).toEqual([])

  const asked = source.requests.length
  const again = await readReport(source, ['--events', map, '--apply'])
  expect(again).toMatchObject({ code: 0, report: { counts: { already: 5 } } })
  expect(again.report.webhooks.map(({ webhook }: { webhook: string }) => webhook)).toEqual(
    made.report.webhooks.map(({ webhook }: { webhook: string }) => webhook),
  )
  expect(await listWebhooks(firstAccount.account)).toEqual(webhooks)
  expect(source.requests.slice(asked).filter((line) => line.includes('secret'))).toEqual([])
  expect(isReadOnly(source)).toBe(true)
})

test('what has no counterpart is skipped with its reason and remedy, and a map mends it in a later run', async () => {
  const cases: [SvixEndpoint, string, RegExp][] = [
    [
      makeEndpoint({ filterTypes: ['invoice.paid', 'toString', '__proto__'] }),
      'unknown_event_types',
      /invoice\.paid, toString, __proto__\. Say with --events/,
    ],
    [makeEndpoint({ filterTypes: null }), 'unknown_event_types', /no filter and receives all types/],
    [makeEndpoint({ channels: ['project_1'] }), 'narrower_filter', /channels project_1\. .*--ignore-filters/],
    [makeEndpoint({}, { key: 'whsk_abc' }), 'secret_unusable', /asymmetric signature\. Rotate the secret/],
    [makeEndpoint({}, { key: makeSecret(65) }), 'secret_unusable', /has not 24 to 64 bytes/],
    [makeEndpoint({}, { key: makeSecret(23) }), 'secret_unusable', /has not 24 to 64 bytes/],
    [makeEndpoint({}, { key: `whsec_${Buffer.alloc(32, 7).toString('base64')}` }), 'secret_unusable', /it is weak/],
    [makeEndpoint({}, { headers: { cookie: 'a=b' } }), 'header_refused', /headers\.cookie .*Remove the header/],
    [makeEndpoint({}, { headers: { 'x-key': 'a\r\nx-other: b' } }), 'header_refused', /the value of x-key/],
    [makeEndpoint({}, { sensitive: ['authorization'] }), 'header_unreadable', /authorization\. The source hides/],
    [makeEndpoint({ url: 7 }), 'malformed', /url\. The source does not describe/],
    [makeEndpoint({ filterTypes: 'contract.update' }), 'malformed', /eventTypes/],
  ]
  const app = makeApp(cases.map(([endpoint]) => endpoint))
  await using source = await startSvix([app])
  const ended = await importSvix(source, ['--apply'])
  expect(ended.code).toBe(1)
  expect(ended.stderr).toBe(`Not imported: ${cases.length}. The report has a remedy for each.\n`)
  for (const [{ endpoint, key }, reason, says] of cases) {
    const [, why = ''] = new RegExp(`${endpoint.id}  .*\\n  (.*)`).exec(ended.stdout) ?? []
    expect(why).toMatch(new RegExp(`^${reason}: `))
    expect(why).toMatch(says)
    expect(ended.stdout).not.toContain(key)
  }
  const map = await writeMap({
    'invoice.paid': null,
    toString: 'contract.create',
    '*': ['contract.delete'],
  })
  const mended = await readReport(source, ['--events', map, '--ignore-filters', '--apply'])
  const byId = new Map(mended.report.webhooks.map((webhook: { endpoint: string }) => [webhook.endpoint, webhook]))
  expect(byId.get(cases[0]![0].endpoint.id)).toMatchObject({ outcome: 'skipped', detail: '__proto__' })
  expect(byId.get(cases[1]![0].endpoint.id)).toMatchObject({ outcome: 'created', events: ['contract.delete'] })
  expect(byId.get(cases[2]![0].endpoint.id)).toMatchObject({
    outcome: 'created',
    notes: ['left out, so that it receives more: channels project_1'],
  })
})

test('an endpoint that is left out on purpose, by its id or by its types, is no failure of the run, nor of the next one', async () => {
  const unwanted = makeEndpoint({ channels: ['project_1'] })
  const app = makeApp([unwanted, makeEndpoint({ filterTypes: ['invoice.voided'], disabled: true }), makeEndpoint()])
  await using source = await startSvix([app])
  const map = await writeMap({ 'invoice.voided': null })
  const options = ['--events', map, '--leave-out', unwanted.endpoint.id, '--apply']
  const ended = await importSvix(source, options)
  expect([ended.code, ended.stderr]).toEqual([0, ''])
  expect(ended.stdout).toMatch(/webhook {2}created .* 1 event type$/m)
  expect(ended.stdout).toMatch(/; webhooks: 2 left out, 1 created$/m)
  expect(ended.stdout).toMatch(/^webhook {2}left out .*\/\S* {2}named by --leave-out$/m)
  // It is disabled at the source too, which is not the reason.
  expect(ended.stdout).toMatch(/^webhook {2}left out .*\/\S* {2}each of its event types is null in --events$/m)
  const { code, report } = await readReport(source, options)
  expect([code, report.counts]).toEqual([0, { already: 2, left_out: 2 }])
  // Another run takes it, and says again why it cannot.
  expect((await importSvix(source, ['--events', map, '--apply'])).stderr).toContain('Not imported: 1.')
})

test('a refusal of the service is told for its row, and the run goes on', async () => {
  const app = makeApp([makeEndpoint({ url: 'https://10.0.0.1/hook' }), makeEndpoint()])
  await using source = await startSvix([app])
  const { code, report } = await readReport(source, ['--apply'])
  expect(code).toBe(1)
  expect(report.webhooks).toMatchObject([
    {
      outcome: 'refused',
      reason: 'validation_failed',
      url: 'https://10.0.0.1/hook',
      detail: expect.stringContaining('public'),
    },
    { outcome: 'created' },
  ])
})

test('a URL that is none, and endpoints of an account that was deleted, are refused for their row alone', async () => {
  const urls = [
    'https://example.com/\u0000',
    'https://example.com/\ud800',
    'javascript:alert(1)',
    `https://a.example/${'x'.repeat(3000)}`,
  ]
  const app = makeApp(urls.map((url) => makeEndpoint({ url })))
  await using source = await startSvix([app])
  const { code, report } = await readReport(source, ['--apply'])
  expect(code).toBe(1)
  expect(report.counts).toEqual({ created: 1, refused: urls.length })
  // The history knows accounts by their webhooks; the kept answer tells that an earlier run made this one.
  const again = await readReport(source, ['--apply'])
  expect(again.report.counts).toEqual({ already: 1, refused: urls.length })
  expect(again.report.accounts[0].account).toBe(report.accounts[0].account)
  await fixture.service.admin('DELETE', `/api/v3/identity/account/${report.accounts[0].account}`)
  await using later = await startSvix([{ ...app, endpoints: [makeEndpoint()] }])
  const after = await readReport(later, ['--apply'])
  expect(after.report.counts).toEqual({ already: 1, refused: 1 })
})

test('hostile texts of the source become harmless names, and no line of the report is forged', async () => {
  const names = [
    '\u0000\u001b[31m',
    '\ud800',
    'a\nwebhook  created  forged',
    '\u202eevil',
    'x'.repeat(5000),
    `${'y'.repeat(150)}😀`.repeat(3),
    '',
  ]
  const apps = names.map((name) => makeApp([makeEndpoint({ description: name, uid: name })], name))
  const odd = { app: { id: '../../secret?x=1#\u0000', name: 'odd', metadata: {} }, endpoints: [makeEndpoint()] }
  await using source = await startSvix([...apps, odd])
  const ended = await importSvix(source, ['--apply'])
  expect(ended).toMatchObject({ code: 0, stderr: '' })
  expect(ended.stdout).not.toMatch(/^webhook {2}created {2}forged/m)
  expect(ended.stdout.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u)
  const { report } = await readReport(source)
  expect(report.counts).toEqual({ already: 2 * (names.length + 1) })
  for (const { account } of report.accounts) {
    const { body } = await fixture.service.admin('GET', `/api/v3/identity/account/${account}`)
    expect(body.data.name).toMatch(/^[^\p{Cc}\p{Cf}\p{Cs}]{1,200}$/u)
  }
})

test('a run that ends in the middle is resumed: all is there once', async () => {
  const apps = [makeApp([makeEndpoint(), makeEndpoint({ disabled: true }), makeEndpoint()]), makeApp([makeEndpoint()])]
  await using source = await startSvix(apps, { pageSize: 2 })
  const before = await countWebhooks()
  for (const nth of [5, 5, 6, 6]) {
    source.fail({ status: 500, body: 'down', headers: { 'retry-after': '0' } }, { nth })
    const ended = await importSvix(source, ['--apply'])
    expect(ended.code).toBe(1)
    expect(ended.stderr).toMatch(
      /^The source does not answer GET \S+ \(500\)\. Run the command again later: it goes on/,
    )
    source.mend()
  }
  expect((await importSvix(source, ['--apply'])).code).toBe(0)
  expect(await countWebhooks()).toBe(before + 4)
})

test('two runs at once make each row once', async () => {
  const app = makeApp(Array.from({ length: 20 }, (_, index) => makeEndpoint({ disabled: index % 2 === 0 })))
  await using source = await startSvix([app])
  const before = await countWebhooks()
  const args = ['import', 'svix', '--from', source.origin, '--apply']
  await using importer = fixture.start(args, { SIGNALBOX_IMPORT_TOKEN: SOURCE_TOKEN })
  await waitFor('the begin of the first run', () => source.requests.length > 0)
  expect(await importSvix(source, ['--apply'])).toMatchObject({ code: 0 })
  expect(await limit(importer.ended, 60_000, 'the end of the run')).toMatchObject({ code: 0 })
  expect(await countWebhooks()).toBe(before + 20)
  const { report } = await readReport(source)
  expect(report.counts).toEqual({ already: 21 })
  const rows = await listWebhooks(report.accounts[0].account)
  expect(rows.filter(({ is_actived: isActive }) => isActive)).toHaveLength(10)
  expect(new Set(rows.map(({ events }) => events.join()))).toEqual(new Set(['contract.update,webhook.test']))
})

test('a disabled endpoint whose run ended before it was switched off is switched off by the next one, and later left alone', async () => {
  const { admin } = fixture.service
  const off = makeEndpoint({ disabled: true })
  const app = makeApp([off])
  const key = keyOf('svix', 'disabled', [app.app.id, off.endpoint.id])
  const body = { url: off.endpoint.url, account: fixture.account, secret: off.key }
  const made = await admin('POST', '/api/v3/webhook/webhook', body, { 'idempotency-key': key, 'x-request-id': key })
  const path = `/api/v3/webhook/webhook/${made.body.data.document_id}`
  await using source = await startSvix([app])
  expect(await importSvix(source, ['--apply'])).toMatchObject({ code: 0 })
  expect((await admin('GET', path)).body.data.is_actived).toBe(false)
  expect((await admin('GET', `${path}/events`)).body.data.events).toHaveLength(2)
  await admin('PATCH', `${path}/active`, { is_actived: true })
  expect(await importSvix(source, ['--apply'])).toMatchObject({ code: 0 })
  expect((await admin('GET', path)).body.data.is_actived).toBe(true)
})

test('an endpoint that is disabled at the source after its import stays active here', async () => {
  const endpoint = makeEndpoint()
  const app = makeApp([endpoint])
  await using active = await startSvix([app])
  const { report } = await readReport(active, ['--apply'])
  const later = { ...endpoint, endpoint: { ...endpoint.endpoint, disabled: true } }
  await using source = await startSvix([{ ...app, endpoints: [later] }])
  expect(await readReport(source, ['--apply'])).toMatchObject({ report: { counts: { already: 2 } } })
  const { body } = await fixture.service.admin('GET', `/api/v3/webhook/webhook/${report.webhooks[0].webhook}`)
  expect(body.data.is_actived).toBe(true)
})

test('a tenant cannot pass its own webhook off as an imported one', async () => {
  const victim = makeEndpoint()
  const app = makeApp([victim])
  const { admin } = fixture.service
  const { call, userId } = await fixture.service.signInMember([fixture.account])
  const found = await admin('GET', '/api/v3/identity/role?filters=name|eq|account-admin')
  const roles = [found.body.data[0].document_id]
  await admin('PATCH', `/api/v3/identity/account/${fixture.account}/member`, { user: userId, roles })
  const key = keyOf('svix', 'webhook', [app.app.id, victim.endpoint.id])
  const body = { url: `${fixture.receiver.origin}/tenant`, account: fixture.account }
  const forged = await call('POST', '/api/v3/webhook/webhook', body, { 'idempotency-key': key, 'x-request-id': key })
  expect(forged.status).toBe(201)
  await using source = await startSvix([app])
  const { report } = await readReport(source, ['--apply'])
  expect(report.counts).toEqual({ created: 2 })
  expect(report.webhooks[0].webhook).not.toBe(forged.body.data.document_id)
})

test('an account that somebody without webhook:import made under the key of a tenant is not used', async () => {
  const { admin } = fixture.service
  const app = makeApp([makeEndpoint()])
  const { call, userId } = await fixture.service.signInMember()
  const role = await admin('POST', '/api/v3/identity/role', { name: unique('maker'), permissions: ['account:create'] })
  await admin('PATCH', `/api/v3/identity/user/${userId}`, { roles: [role.body.data.document_id] })
  const key = keyOf('svix', 'account', [app.app.id])
  const planted = await call('POST', '/api/v3/identity/account', { name: 'Trap' }, { 'x-request-id': key })
  expect(planted.status).toBe(201)
  await using source = await startSvix([app])
  const { report } = await readReport(source, ['--apply'])
  expect(report.accounts).toMatchObject([{ outcome: 'created' }])
  expect(report.accounts[0].account).not.toBe(planted.body.data.document_id)
  expect((await readReport(source)).report.accounts).toMatchObject([{ account: report.accounts[0].account }])
})

test('--accounts uses accounts that are there, and --only limits the run', async () => {
  const apps = [makeApp([makeEndpoint()]), makeApp([makeEndpoint()])]
  await using source = await startSvix(apps)
  const accounts = await writeMap({ [apps[0]!.app.id]: fixture.account })
  const { report } = await readReport(source, ['--apply', '--only', apps[0]!.app.id, '--accounts', accounts])
  expect(report.accounts).toMatchObject([{ outcome: 'already', account: fixture.account }])
  expect(report.counts).toEqual({ already: 1, created: 1 })
  const unknown = await importSvix(source, ['--only', 'app_unknown'])
  expect(unknown).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/answered 404 to GET \/api\/v1\/app\/app_unknown/),
  })
})

test('an export file is imported as the API is, and known again when the API is read later', async () => {
  const endpoint = makeEndpoint()
  const app = makeApp([endpoint])
  const exported = { ...endpoint.endpoint, secret: { key: endpoint.key }, headers: { headers: {}, sensitive: [] } }
  const file = await writeMap({ source: 'svix', tenants: [{ ...app.app, endpoints: [exported] }] })
  const ended = await fixture.run(['import', 'svix', '--from', file, '--apply'])
  expect(ended).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('webhooks: 1 created') })
  await using source = await startSvix([app])
  expect(await readReport(source)).toMatchObject({ report: { counts: { already: 2 } } })
  for (const [text, says] of [
    ['{', /is not JSON/],
    ['[]', /The export file is not an object/],
    [{ source: 'hook0', tenants: [] }, /must have "source": "svix"/],
    [{ source: 'svix', tenants: {} }, /tenants of the export file is not a list/],
    [{ source: 'svix', tenants: [{ name: 'a' }] }, /no usable id: id must be a text/],
    [{ source: 'svix', tenants: [app.app, app.app] }, /two entries of tenants with one id/],
  ] as const) {
    const refused = await fixture.run(['import', 'svix', '--from', await writeMap(text)])
    expect(refused, String(text)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(says) })
  }
  const missing = await fixture.run(['import', 'svix', '--from', join(folder, 'none')])
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringMatching(/none cannot be read \(ENOENT\)/) })
})

/** More than a page of the source has, 250, and than one of the service, 200. */
const MANY = 260

test('endpoints of one application on more than one page are imported once each', async () => {
  const app = makeApp(Array.from({ length: MANY }, () => makeEndpoint()))
  await using source = await startSvix([app])
  const { code, report } = await readReport(source, ['--apply'])
  expect({ code, counts: report.counts }).toEqual({ code: 0, counts: { created: MANY + 1 } })
  expect(new Set(report.webhooks.map(({ webhook }: { webhook: string }) => webhook)).size).toBe(MANY)
  expect((await readReport(source, ['--apply'])).report.counts).toEqual({ already: MANY + 1 })
})
