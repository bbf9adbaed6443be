import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestApp } from '../harness/app/app.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { startReceiver } from '../harness/fakes/receiver.ts'
import { buildCleanEnvironment, PROJECT_ROOT } from '../harness/process/process.ts'
import { limit } from '../harness/run/wait.ts'
import { type CliFixture, openCliFixture } from './receiver-cli-fixture.ts'

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/
const GIVEN_SECRET = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='

let fixture: CliFixture
beforeAll(async () => {
  fixture = await openCliFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())

/** The id of the newest event of a type. */
async function findEventId(event: string, resourceId: string): Promise<string> {
  const filters = [`event|eq|${event}`, `resource_id|eq|${resourceId}`].map(
    (item) => `filters=${encodeURIComponent(item)}`,
  )
  const { body } = await fixture.service.admin('GET', `/api/v3/webhook/event-occurrence?${filters.join('&')}`)
  return body.data[0].document_id
}

describe('signalbox listen', () => {
  test('forwards events as a webhook receives them: both official verifiers accept them, and a line has the result', async () => {
    await using target = await startReceiver()
    const before = await fixture.createContract()
    await using listening = fixture.start(['listen', '--forward', `${target.origin}/hook`])
    const [, secret = ''] = await listening.waitForOutput(/signed with (whsec_\S+)/)
    const contract = await fixture.createContract()
    const [request] = await target.waitFor(1, 20_000)
    const { headers, body } = request!

    const stripe = new Stripe('sk_test_unused')
    const event = stripe.webhooks.constructEvent(body, headers['x-service-signature']!, secret) as unknown
    expect(event).toEqual(new StandardWebhook(secret).verify(body.toString(), headers))
    const id = await findEventId('contract.create', contract)
    expect(JSON.parse(body.toString())).toEqual({
      id,
      type: 'contract.create',
      api_version: '2026-09-11',
      created_at: expect.stringMatching(/^2026-09-11T/),
      attempt: 1,
      data: {
        account: fixture.account,
        resource: 'contract',
        action: 'create',
        id: contract,
        url: `/api/v3/contract/contract/${contract}`,
      },
    })
    expect(request).toMatchObject({ method: 'POST', path: '/hook' })
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Signalbox-Webhooks\/\d/),
      'x-service-event': 'contract.create',
      'x-service-delivery': expect.stringMatching(UUID),
      'x-service-attempt': '1',
      'webhook-id': id,
    })
    await listening.waitForOutput(
      new RegExp(`^\\d{4}-\\d\\d-\\d\\dT\\S+Z  contract\\.create +${id}  200  \\d+ ms$`, 'm'),
    )
    expect(listening.stdout()).not.toContain(await findEventId('contract.create', before))
  })

  test('the forwarded delivery equals the one of the service except for its time, its dispatch and its signatures', async () => {
    await using target = await startReceiver()
    await fixture.subscribe(['contract.update'])
    await using listening = fixture.start([
      'listen',
      '--forward',
      `${target.origin}/hook`,
      '--events',
      'contract.update',
    ])
    await listening.waitForOutput(/Listening/)
    const contract = await fixture.createContract()
    await fixture.service.admin('PATCH', `/api/v3/contract/contract/${contract}`, { name: 'Changed' })
    await fixture.service.settle()
    const [forwarded] = await target.waitFor(1, 20_000)
    const [own] = await fixture.receiver.waitFor(1, 20_000)
    expect(forwarded!.body.toString()).toBe(own!.body.toString())
    // Headers of the connection, and the trace, which only a POST of the service has.
    const others = ['host', 'connection', 'accept', 'accept-encoding', 'traceparent']
    const namesOf = (headers: Record<string, string>) =>
      Object.keys(headers)
        .filter((name) => !others.includes(name))
        .sort()
    expect(namesOf(forwarded!.headers)).toEqual(namesOf(own!.headers))
    expect(forwarded!.headers['webhook-id']).toBe(own!.headers['webhook-id'])
  })

  test('a redirect is not followed, a refused connection is reported, and the next event is forwarded', async () => {
    await using target = await startReceiver()
    target.behaveNext({ kind: 'redirect', location: '/elsewhere' }, { kind: 'status', status: 500 })
    await using listening = fixture.start(['listen', '--forward', target.origin, '--secret', GIVEN_SECRET])
    await listening.waitForOutput(/signed with the given secret/)
    expect(listening.stdout()).not.toContain(GIVEN_SECRET)
    await fixture.createContract()
    await listening.waitForOutput(/302 \(redirects are not followed\)/)
    await fixture.createContract()
    await listening.waitForOutput(/ 500 {2}\d+ ms/)
    expect(target.requests.map(({ path }) => path)).toEqual(['/', '/'])
    await target.close()
    await fixture.createContract()
    await listening.waitForOutput(/refused \(does the receiver run\?\)/)
  })

  test('--events and --account select the events, and a pattern without an event type is reported', async () => {
    await using listening = fixture.start(['listen', '--account', fixture.account, '--events', '*.update,contarct.*'])
    await listening.waitForOutput(/Listening/)
    expect(listening.stdout()).toContain('No event type matches contarct.* yet.')
    const other = await fixture.service.admin('POST', '/api/v3/identity/account', { name: 'Other' })
    const foreign = await fixture.service.admin('POST', '/api/v3/contract/contract', {
      name: 'Foreign',
      account: other.body.data.document_id,
    })
    await fixture.service.admin('PATCH', `/api/v3/contract/contract/${foreign.body.data.document_id}`, { name: 'x' })
    const contract = await fixture.createContract()
    await fixture.service.admin('PATCH', `/api/v3/contract/contract/${contract}`, { name: 'Changed' })
    const updated = await findEventId('contract.update', contract)
    await listening.waitForOutput(new RegExp(updated))
    expect(listening.stdout().match(/contract\.\w+ /g)).toEqual(['contract.update '])
  })

  test('with --print-json standard output has only envelopes', async () => {
    await using listening = fixture.start(['listen', '--print-json', '--events', 'contract.create'])
    await listening.waitForOutput(/Listening/)
    const contract = await fixture.createContract()
    await listening.waitForOutput(/"contract.create"/)
    const lines = listening
      .stdout()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines).toMatchObject([{ type: 'contract.create', data: { id: contract } }])
  })

  test('it does not print the events of its own polls, even while a webhook subscribes to them', async () => {
    await fixture.subscribe(['event-occurrence.find-all'])
    await using listening = fixture.start(['listen'])
    await listening.waitForOutput(/Listening/)
    const contract = await fixture.createContract()
    await listening.waitForOutput(new RegExp(await findEventId('contract.create', contract)))
    const { rows } = await fixture.service.database.pool.query(
      `select count(*)::int as count from event_occurrence where event = 'event-occurrence.find-all'`,
    )
    expect(rows[0].count).toBeGreaterThan(0)
    expect(listening.stdout()).not.toContain('event-occurrence.find-all')
  })

  test('Ctrl-C ends it with exit code 0, also while an event is being forwarded', async () => {
    await using target = await startReceiver()
    target.behave({ kind: 'hang' })
    await using listening = fixture.start(['listen', '--forward', target.origin])
    await listening.waitForOutput(/Listening/)
    await fixture.createContract()
    await target.waitFor(1, 20_000)
    listening.signal('SIGINT')
    expect(await limit(listening.ended, 5_000, 'the end after SIGINT')).toEqual({ code: 0, signal: null })
    expect(listening.stderr()).toBe('')
  })
})

test('listen ends with exit code 0 when the reader of its output exits, as with head', async () => {
  const child = spawn(process.execPath, [join(PROJECT_ROOT, 'src', 'main.ts'), 'listen'], {
    env: {
      ...buildCleanEnvironment(process.env),
      SIGNALBOX_URL: fixture.url,
      SIGNALBOX_TOKEN: fixture.service.adminToken,
    },
  })
  const ended = once(child, 'close')
  child.stderr.resume()
  await once(child.stdout, 'data')
  child.stdout.destroy()
  await fixture.createContract()
  expect(await limit(ended, 20_000, 'the end of the command')).toEqual([0, null])
})

describe('the connection to the service', () => {
  test('when it is lost, one line reports it, and the events in between follow', async () => {
    await using database = await createTestDatabase()
    const first = await openCliFixture({ database })
    await using listening = first.start(['listen'])
    await listening.waitForOutput(/Listening/)
    await first[Symbol.asyncDispose]()
    // Either error is possible: the service is gone, or still stopping.
    await listening.waitForOutput(/The service (cannot be reached|answered 503) .* Retrying; no event is lost\./)
    const contract = await createContractOf(database)
    await using _next = await openCliFixture({ database, env: { PORT: new URL(first.url).port } })
    await listening.waitForOutput(new RegExp(contract.event))
    expect(listening.stdout().match(/Retrying; no event is lost/g)).toHaveLength(1)
    expect(listening.stdout().match(/The service is reachable again\./g)).toHaveLength(1)
    expect(listening.stdout().match(new RegExp(contract.event, 'g'))).toHaveLength(1)
  }, 90_000)

  test('a token that is revoked meanwhile ends it with one sentence and exit code 1', async () => {
    const made = await fixture.service.admin('POST', '/api/v3/identity/api-key', {
      name: 'Listener',
      permissions: ['event-occurrence:find-all'],
    })
    const { key, document_id: id } = made.body.data
    await using listening = fixture.start(['listen', '--events', 'contract.*'], { SIGNALBOX_TOKEN: key })
    await listening.waitForOutput(/Listening/)
    await fixture.service.admin('DELETE', `/api/v3/identity/api-key/${id}`)
    const ending = await limit(listening.ended, 20_000, 'the end after the revocation')
    expect(ending).toEqual({ code: 1, signal: null })
    expect(listening.stderr().trim()).toMatch(/^The service refused the token: .*--token or SIGNALBOX_TOKEN\.$/)
  })

  test.for([
    {
      name: 'an unknown token',
      env: { SIGNALBOX_TOKEN: 'sbx_nobody' },
      says: /^The service refused the token: .*SIGNALBOX_TOKEN\.$/,
    },
    {
      name: 'no service there',
      env: { SIGNALBOX_URL: 'http://127.0.0.1:9' },
      says: /cannot be reached at http:\/\/127\.0\.0\.1:9 .*--url/,
    },
    {
      name: 'no token for another machine',
      env: { SIGNALBOX_URL: 'https://signalbox.example', SIGNALBOX_TOKEN: '' },
      says: /^There is no token for https:\/\/signalbox\.example\. Give one with --token or SIGNALBOX_TOKEN\.$/,
    },
    {
      name: 'no token left by npm start',
      env: { SIGNALBOX_TOKEN: '', SIGNALBOX_DATA_DIR: 'nowhere' },
      says: /^There is no token\. .*nowhere.demo-token\)\.$/,
    },
    {
      name: 'a URL that is none',
      env: { SIGNALBOX_URL: 'localhost:3000' },
      says: /^SIGNALBOX_URL must be an http or https URL\.$/,
    },
  ])('$name: one sentence, exit code 1', async ({ env, says }) => {
    const ended = await fixture.run(['listen'], env as Record<string, string>)
    expect(ended.code).toBe(1)
    expect(ended.stderr.trim()).toMatch(says)
    expect(ended.stderr.trim().split('\n')).toHaveLength(1)
  })

  test('the error for a token without the permission names it', async () => {
    const member = await fixture.service.signInMember([fixture.account])
    const ended = await fixture.run(['listen'], { SIGNALBOX_TOKEN: member.token })
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('event-occurrence:find-all') })
  })

  test.for([
    { args: ['--forward', 'ftp://localhost/'], says: 'It must be an http or https URL.' },
    { args: ['--forward', 'http://user@localhost/'], says: 'It must hold no user or password.' },
    { args: ['--events', 'contract'], says: '"contract" is not an event type or pattern' },
    { args: ['--account', 'Acme'], says: 'It must be a UUID in lower case.' },
    { args: ['--secret', 'hunter2'], says: '--secret must be a webhook secret' },
    { args: ['--token', 'hunter2 '], says: '--token must be one token' },
  ])('listen $args is refused with the rule', async ({ args, says }) => {
    const ended = await fixture.run(['listen', ...args])
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining(says) })
    expect(ended.stderr).not.toContain('hunter2')
  })
})

/** Makes a change through a process that no command calls. */
async function createContractOf(database: TestDatabase): Promise<{ event: string }> {
  const service = await createTestApp({ database })
  try {
    const account = await service.admin('POST', '/api/v3/identity/account', { name: 'Meanwhile' })
    const body = { name: 'Meanwhile', account: account.body.data.document_id }
    const made = await service.admin('POST', '/api/v3/contract/contract', body)
    const filter = encodeURIComponent(`resource_id|eq|${made.body.data.document_id}`)
    const events = await service.admin('GET', `/api/v3/webhook/event-occurrence?filters=${filter}`)
    return { event: events.body.data[0].document_id }
  } finally {
    await service[Symbol.asyncDispose]()
  }
}
