import { createHmac, randomUUID } from 'node:crypto'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { expect, test, vi } from 'vitest'
import { openForFile } from '../harness/run/open-for-file.ts'
import { SOURCE_TOKEN, startConvoy, startHook0, startOutpost, startSvix } from './import-simulators.ts'
import { openCliFixture } from './receiver-cli-fixture.ts'

const fixture = await openForFile(openCliFixture())

const importFrom = (source: string, from: string, args: string[] = []) =>
  fixture.run(['import', source, '--from', from, ...args], { SIGNALBOX_IMPORT_TOKEN: SOURCE_TOKEN })

async function readReport(source: string, from: string, args: string[] = []) {
  const ended = await importFrom(source, from, [...args, '--json'])
  return { ...ended, report: JSON.parse(ended.stdout) }
}

const urlOf = (name: string) => `${fixture.receiver.origin}/${name}`

/** What the receiver got at a path after a contract of the account was created. */
async function deliver(account: string, name: string) {
  await fixture.service.admin('POST', '/api/v3/contract/contract', { name: 'A contract', account })
  await fixture.service.settle()
  return fixture.receiver.requests.filter(({ path }) => path === `/${name}`)
}

const readWebhook = async (id: string) =>
  (await fixture.service.admin('GET', `/api/v3/webhook/webhook/${id}`)).body.data

/** A text as Convoy makes its secrets: letters and digits. */
const CONVOY_SECRET = 'x9Tq2LbV7sNc4RzK8mWpD3hYf'

test('Convoy: a project becomes an account; the subscriptions of an endpoint its events; its key in a header a header', async () => {
  const endpoint = (name: string, members: object = {}) => ({
    uid: `ep-${name}`,
    project_id: 'project-1',
    url: urlOf(name),
    name,
    description: '',
    status: 'active',
    rate_limit: 0,
    authentication: null,
    secrets: [{ uid: 's', value: CONVOY_SECRET, expires_at: null }],
    ...members,
  })
  const subscription = (name: string, eventTypes: string[], filter: object = {}) => ({
    uid: `sub-${name}-${eventTypes.join()}`,
    endpoint_metadata: { uid: `ep-${name}` },
    filter_config: { event_types: eventTypes, filter: { headers: {}, body: {}, is_flattened: true, ...filter } },
  })
  const older = { uid: 'o', value: 'an-older-secret-of-the-rotation', expires_at: '2026-01-01T00:00:00Z' }
  const header = { type: 'api_key', api_key: { header_name: 'X-Api-Key', header_value: 'value-of-the-header' } }
  await using source = await startConvoy({
    row: { uid: 'project-1', name: 'Invoices' },
    endpoints: [
      endpoint('convoy-a', { rate_limit: 50, rate_limit_duration: '1m0s', authentication: header }),
      endpoint('convoy-off', { status: 'inactive', secrets: [older, { uid: 's', value: CONVOY_SECRET }] }),
      endpoint('convoy-oauth', { authentication: { type: 'oauth2', oauth2: {} } }),
      endpoint('convoy-form', { content_type: 'application/x-www-form-urlencoded' }),
      endpoint('convoy-filter'),
      endpoint('convoy-short', { secrets: [{ uid: 's', value: 'short' }] }),
      endpoint('convoy-none'),
    ],
    subscriptions: [
      subscription('convoy-a', ['contract.create']),
      subscription('convoy-a', ['contract.delete']),
      subscription('convoy-filter', ['contract.create'], { body: { amount: { $gt: 10 } } }),
      ...['off', 'oauth', 'form', 'short'].map((name) => subscription(`convoy-${name}`, ['contract.create'])),
    ],
    pageSize: 2,
  })
  expect(await importFrom('convoy', source.origin)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Name the project with --only <id>'),
  })
  const made = await readReport('convoy', source.origin, ['--only', 'project-1', '--apply'])
  expect(made.code).toBe(1)
  expect(made.report.accounts).toMatchObject([{ name: 'Invoices (convoy project-1)', outcome: 'created' }])
  expect(made.report.webhooks).toMatchObject([
    {
      outcome: 'created',
      events: ['contract.create', 'contract.delete'],
      notes: [
        'the limit of 50 messages in 60 s is left out: 1 a second is the lowest here',
        expect.stringContaining('whsec_<base64'),
      ],
    },
    { outcome: 'created', is_disabled: true },
    { outcome: 'skipped', reason: 'authentication', detail: 'oauth2' },
    { outcome: 'skipped', reason: 'content_type' },
    { outcome: 'skipped', reason: 'narrower_filter' },
    { outcome: 'skipped', reason: 'secret_unusable' },
    { outcome: 'skipped', reason: 'no_event_types' },
  ])
  for (const text of [CONVOY_SECRET, 'value-of-the-header', 'an-older-secret']) expect(made.stdout).not.toContain(text)
  expect(made.report.signature).toContain('x-convoy-signature, which is not sent here')
  expect((await readWebhook(made.report.webhooks[1].webhook)).is_actived).toBe(false)

  const [delivery] = await deliver(made.report.accounts[0].account, 'convoy-a')
  const { headers, body } = delivery!
  expect(headers).toMatchObject({ 'x-api-key': 'value-of-the-header' })
  expect(headers['x-convoy-signature']).toBeUndefined()
  vi.useFakeTimers({ toFake: ['Date'], now: Number(headers['webhook-timestamp']) * 1000 })
  try {
    const secret = `whsec_${Buffer.from(CONVOY_SECRET).toString('base64')}`
    new StandardWebhook(secret).verify(body.toString('utf8'), headers)
  } finally {
    vi.useRealTimers()
  }
  const again = await readReport('convoy', source.origin, ['--only', 'project-1', '--apply'])
  expect(again.report.counts).toEqual({ already: 3, skipped: 5 })
})

test('Convoy: each owner of a project is an account of its own, so that no customer gets the events of another', async () => {
  const endpoint = (name: string, owner: string) => ({
    uid: `ep-${name}`,
    url: urlOf(name),
    name,
    owner_id: owner,
    status: 'active',
    secrets: [{ uid: 's', value: CONVOY_SECRET }],
  })
  const names = ['owned-a', 'owned-b', 'owned-c', 'owned-none']
  const config = { event_types: ['contract.create'], filter: { headers: {}, body: {} } }
  const project = {
    row: { uid: 'project-2', name: 'Shop' },
    endpoints: [
      endpoint('owned-a', 'acme/1'),
      endpoint('owned-b', 'globex'),
      endpoint('owned-c', 'acme/1'),
      endpoint('owned-none', ''),
    ],
    subscriptions: names.map((name) => ({ endpoint_metadata: { uid: `ep-${name}` }, filter_config: config })),
  }
  await using source = await startConvoy(project)
  const { code, report } = await readReport('convoy', source.origin, ['--only', 'project-2', '--apply'])
  expect(code).toBe(0)
  expect(report.accounts).toMatchObject([
    { tenant: 'project-2', name: 'Shop (convoy project-2)' },
    { tenant: 'project-2/acme/1', name: 'Shop acme/1 (convoy project-2/acme/1)' },
    { tenant: 'project-2/globex', name: 'Shop globex (convoy project-2/globex)' },
  ])
  expect(report.webhooks.map(({ tenant, endpoint: id }: { tenant: string; endpoint: string }) => [tenant, id])).toEqual(
    [
      ['project-2', 'ep-owned-none'],
      ['project-2/acme/1', 'ep-owned-a'],
      ['project-2/acme/1', 'ep-owned-c'],
      ['project-2/globex', 'ep-owned-b'],
    ],
  )
  await deliver(report.accounts[2].account, 'owned-b')
  const got = fixture.receiver.requests.map(({ path }) => path.slice(1)).filter((path) => names.includes(path))
  expect(got).toEqual(['owned-b'])
})

test('Outpost: tenants become accounts, webhook destinations webhooks, and topics their events', async () => {
  const secret = `whsec_${Buffer.from(randomUUID()).toString('base64')}`
  const destination = (name: string, members: object = {}) => ({
    id: `des_${name}`,
    type: 'webhook',
    topics: ['contract.create'],
    disabled_at: null,
    config: { url: urlOf(name) },
    credentials: { secret },
    ...members,
  })
  const tenants = Array.from({ length: 120 }, (_, index) => ({
    row: { id: `tenant/${index}`, metadata: null },
    destinations: [] as object[],
  }))
  tenants[110]!.destinations = [
    destination('outpost-a', { config: { url: urlOf('outpost-a'), custom_headers: '{"x-tenant":"110"}' } }),
    destination('outpost-off', { disabled_at: '2026-01-01T00:00:00Z' }),
    destination('outpost-all', { topics: ['*'] }),
    destination('outpost-star', { topics: '*' }),
    destination('outpost-filter', { filter: { data: { amount: { $gte: 1 } } } }),
    destination('outpost-hidden', { credentials: { secret: 'some***********' } }),
    destination('outpost-queue', { type: 'aws_sqs', config: { queue_url: 'https://sqs.example' } }),
    destination('outpost-broken', { config: { url: urlOf('outpost-broken'), custom_headers: '{' } }),
  ]
  const rows = tenants as Parameters<typeof startOutpost>[0]
  await using source = await startOutpost(rows)
  const base = `${source.origin}/api/v1`
  const made = await readReport('outpost', base, ['--apply'])
  expect(made.report.accounts).toHaveLength(120)
  expect(made.report.webhooks).toMatchObject([
    { outcome: 'created', tenant: 'tenant/110', notes: [] },
    { outcome: 'created', is_disabled: true },
    { outcome: 'skipped', reason: 'unknown_event_types', detail: 'it has no filter and receives all types' },
    { outcome: 'skipped', reason: 'unknown_event_types' },
    { outcome: 'skipped', reason: 'narrower_filter' },
    { outcome: 'skipped', reason: 'secret_unusable' },
    { outcome: 'skipped', reason: 'not_http', detail: 'aws_sqs' },
    { outcome: 'skipped', reason: 'malformed', detail: 'config.custom_headers' },
  ])
  const { account } = made.report.accounts[110]
  const [delivery] = await deliver(account, 'outpost-a')
  const { headers, body } = delivery!
  expect(headers['x-tenant']).toBe('110')
  // Its default mode signs `<t>.<body>` with the text of the secret: the value is the same, the header another.
  const [, t, v1] = /^t=(\d+),v1=([0-9a-f]+)$/.exec(headers['x-service-signature']!)!
  expect(createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')).toBe(v1)
  vi.useFakeTimers({ toFake: ['Date'], now: Number(t) * 1000 })
  try {
    new StandardWebhook(secret).verify(body.toString('utf8'), headers)
  } finally {
    vi.useRealTimers()
  }
  await using blind = await startOutpost(rows, { canList: false })
  const refused = await importFrom('outpost', `${blind.origin}/api/v1`)
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('Name what to import with --only <id>') })
  const only = await readReport('outpost', `${blind.origin}/api/v1`, ['--only', 'tenant/110'])
  expect(only.report.counts).toEqual({ already: 3, skipped: 6 })
})

test('Hook0: applications become accounts; subscriptions with labels are imported when that is accepted', async () => {
  const [organization, application] = [randomUUID(), randomUUID()]
  const subscription = (name: string, members: object = {}) => ({
    application_id: application,
    subscription_id: randomUUID(),
    is_enabled: true,
    event_types: ['contract.create', 'billing.invoice.paid'],
    description: name,
    secret: randomUUID(),
    labels: { tenant: 'acme' },
    target: { type: 'http', method: 'POST', url: urlOf(name), headers: { 'X-Tenant': 'acme' } },
    ...members,
  })
  const first = subscription('hook0-a', { event_types: ['contract.create'] })
  const rows = [
    first,
    subscription('hook0-off', { is_enabled: false, event_types: ['contract.create'] }),
    subscription('hook0-unknown'),
    subscription('hook0-put', { target: { type: 'http', method: 'PUT', url: urlOf('hook0-put'), headers: {} } }),
  ]
  await using source = await startHook0(organization, [
    { row: { application_id: application, organization_id: organization, name: 'Shop' }, subscriptions: rows },
  ])
  expect(await importFrom('hook0', source.origin)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Name it with --organization <id>'),
  })
  const narrow = await readReport('hook0', source.origin, ['--organization', organization])
  expect(narrow.report.webhooks).toMatchObject([
    { outcome: 'skipped', reason: 'narrower_filter', detail: 'labels tenant' },
    { reason: 'narrower_filter' },
    { reason: 'narrower_filter' },
    { reason: 'method', detail: 'PUT' },
  ])
  const made = await readReport('hook0', source.origin, ['--organization', organization, '--ignore-filters', '--apply'])
  expect(made.report.webhooks).toMatchObject([
    { outcome: 'created' },
    { outcome: 'created', is_disabled: true },
    { outcome: 'skipped', reason: 'unknown_event_types', detail: 'billing.invoice.paid' },
    { outcome: 'skipped', reason: 'method' },
  ])
  expect(made.stdout).not.toContain(first.secret)
  const [delivery] = await deliver(made.report.accounts[0].account, 'hook0-a')
  const { headers, body } = delivery!
  vi.useFakeTimers({ toFake: ['Date'], now: Number(headers['webhook-timestamp']) * 1000 })
  try {
    const secret = `whsec_${Buffer.from(first.secret).toString('base64')}`
    new StandardWebhook(secret).verify(body.toString('utf8'), headers)
  } finally {
    vi.useRealTimers()
  }
  const forbidden = await importFrom('hook0', source.origin, ['--organization', randomUUID()])
  expect(forbidden).toMatchObject({ code: 1, stderr: expect.stringMatching(/^The source refused its token \(403/) })
})

test('no token, a token in the address, and other unusable options are refused before anything is sent', async () => {
  await using source = await startSvix([])
  const { port } = new URL(source.origin)
  const cases: [string[], Record<string, string>, RegExp][] = [
    [['svix', '--from', source.origin], {}, /There is no token for the source\. Give it with --token-file/],
    [
      ['svix', '--from', `http://user:secret-text@127.0.0.1:${port}`],
      {},
      /^--from must have no query, fragment or user/,
    ],
    [['svix', '--from', `${source.origin}/?token=secret-text`], {}, /^--from must have no query/],
    [
      ['svix', '--from', source.origin, '--token-file', '/nowhere/token'],
      {},
      /\/nowhere\/token cannot be read \(ENOENT\)/,
    ],
    [
      ['svix', '--from', source.origin],
      { SIGNALBOX_IMPORT_TOKEN: 'secret-text two' },
      /SIGNALBOX_IMPORT_TOKEN must be one token/,
    ],
    [['svix', '--from', source.origin, '--apply', '--dry-run'], {}, /exclude each other/],
    [['other', '--from', source.origin], {}, /unknown command 'other'/],
    [['svix'], {}, /required option '--from <url or file>' not specified/],
    [['svix', '--from', source.origin, '--token', 'secret-text'], {}, /unknown option '--token'/],
  ]
  for (const [args, env, says] of cases) {
    const ended = await fixture.run(['import', ...args], env)
    expect(ended, args.join(' ')).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(says) })
    expect(ended.stderr, args.join(' ')).not.toContain('secret-text')
  }
  expect(source.requests).toEqual([])
  const wrong = await fixture.run(['import', 'svix', '--from', source.origin], { SIGNALBOX_IMPORT_TOKEN: 'other' })
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringMatching(/^The source refused its token \(401/) })
})

test('a key that lacks one of the permissions is refused, with the name of it, and one with all of them is enough', async () => {
  const endpoint = { id: 'ep_key', url: urlOf('key'), filterTypes: ['contract.create'] }
  const key = `whsec_${Buffer.from(randomUUID()).toString('base64')}`
  await using source = await startSvix([{ app: { id: 'app_key', name: 'Key' }, endpoints: [{ endpoint, key }] }])
  const all = ['account:create', 'webhook:create', 'webhook:import', 'event:find-all', 'audit-log:find-all']
  const run = async (permissions: string[]) => {
    const made = await fixture.service.admin('POST', '/api/v3/identity/api-key', { name: 'import', permissions })
    const env = { SIGNALBOX_IMPORT_TOKEN: SOURCE_TOKEN, SIGNALBOX_TOKEN: made.body.data.key }
    return fixture.run(['import', 'svix', '--from', source.origin, '--apply'], env)
  }
  for (const missing of ['account:create', 'audit-log:find-all', 'event:find-all', 'webhook:import'])
    expect(await run(all.filter((variable) => variable !== missing)), missing).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^The token lacks the permission: /),
    })
  expect(await run(all)).toMatchObject({ code: 0, stdout: expect.stringContaining('webhooks: 1 created') })
})
