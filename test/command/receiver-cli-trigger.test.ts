import { describe, expect, test } from 'vitest'
import { openForFile } from '../harness/run/open-for-file.ts'
import { openCliFixture } from './receiver-cli-fixture.ts'

const fixture = await openForFile(openCliFixture())
await fixture.subscribe(['contract.create', 'contract.update', 'contract.delete', 'invoice.paid'])

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}'

/** The id of the event in the output of a command. */
function readEventId(stdout: string): string {
  return new RegExp(`^event     (${UUID})  `, 'm').exec(stdout)?.[1] ?? `no event id in: ${stdout}`
}

async function readEvent(id: string) {
  const { body } = await fixture.service.admin('GET', `/api/v3/webhook/event-occurrence/${id}`)
  return body.data
}

async function countContracts(): Promise<number> {
  const { body } = await fixture.service.admin('GET', '/api/v3/contract/contract?count=true')
  return body.pagination.total
}

describe('signalbox trigger', () => {
  test('contract.create creates a contract, and prints its event and its dispatch', async () => {
    const ended = await fixture.run(['trigger', 'contract.create'])
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    const event = await readEvent(readEventId(ended.stdout))
    expect(event).toMatchObject({ event: 'contract.create', resource_id: expect.any(String) })
    const line = new RegExp(`^dispatch  (${UUID})  success  attempts = 1  200  \\d+ ms  webhook ${UUID}$`, 'm')
    const [, dispatch = ''] = line.exec(ended.stdout) ?? []
    const row = await fixture.service.admin('GET', `/api/v3/webhook/dispatch/${dispatch}`)
    expect(row.body.data).toMatchObject({ event_id: event.document_id, status: 'success' })
    const delivered = fixture.receiver.requests.map(({ body }) => JSON.parse(body.toString()).id)
    expect(delivered).toContain(event.document_id)
    // The receiver can read the resource of the event.
    expect((await fixture.service.admin('GET', event.url)).status).toBe(200)
  })

  test('shows the status code of a failed POST', async () => {
    const webhook = await fixture.subscribe(['contract.create'])
    await fixture.service.admin('PATCH', `/api/v3/webhook/webhook/${webhook}/active`, { is_actived: false })
    fixture.receiver.behaveNext({ kind: 'status', status: 401 })
    const refused = await fixture.run(['trigger', 'webhook.test', '--webhook', webhook])
    expect(refused).toMatchObject({ code: 0, stderr: '' })
    const line = new RegExp(
      `^dispatch  ${UUID}  retrying  attempts = 1  401  http_4xx  \\d+ ms  webhook ${webhook}$`,
      'm',
    )
    expect(refused.stdout).toMatch(line)
  })

  test('contract.update changes the contract of the last run, and creates no other one', async () => {
    const first = await fixture.run(['trigger', 'contract.update'])
    const count = await countContracts()
    const second = await fixture.run(['trigger', 'contract.update'])
    expect(second).toMatchObject({ code: 0, stderr: '' })
    expect(await countContracts()).toBe(count)
    const events = [await readEvent(readEventId(first.stdout)), await readEvent(readEventId(second.stdout))]
    expect(events[1].resource_id).toBe(events[0].resource_id)
    expect(events[1]).toMatchObject({ event: 'contract.update' })
  })

  test('--account owns the contract, and contract.delete deletes a new contract', async () => {
    const kept = await fixture.createContract()
    const ended = await fixture.run(['trigger', 'contract.delete', '--account', fixture.account])
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    const event = await readEvent(readEventId(ended.stdout))
    expect(event).toMatchObject({ event: 'contract.delete', account: fixture.account, url: null })
    expect(event.resource_id).not.toBe(kept)
    expect((await fixture.service.admin('GET', `/api/v3/contract/contract/${event.resource_id}`)).status).toBe(404)
    expect((await fixture.service.admin('GET', `/api/v3/contract/contract/${kept}`)).status).toBe(200)
  })

  test('--id updates that contract and restores it', async () => {
    const id = await fixture.createContract()
    const before = await fixture.service.admin('GET', `/api/v3/contract/contract/${id}`)
    const ended = await fixture.run(['trigger', 'contract.update', '--id', id])
    expect(await readEvent(readEventId(ended.stdout))).toMatchObject({ event: 'contract.update', resource_id: id })
    const after = await fixture.service.admin('GET', `/api/v3/contract/contract/${id}`)
    expect(after.body.data).toEqual({ ...before.body.data, updated_at: expect.any(String) })
  })

  test('webhook.test tests the given webhook', async () => {
    const webhook = await fixture.subscribe(['contract.create'])
    await fixture.service.admin('PATCH', `/api/v3/webhook/webhook/${webhook}/active`, { is_actived: false })
    const ended = await fixture.run(['trigger', 'webhook.test', '--webhook', webhook])
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    expect(await readEvent(readEventId(ended.stdout))).toMatchObject({ event: 'webhook.test', resource_id: webhook })
    expect(ended.stdout.match(/^dispatch /gm)).toHaveLength(1)
    expect(ended.stdout).toMatch(new RegExp(`success  attempts = 1  200  \\d+ ms  webhook ${webhook}`))
  })

  test('an event type of another service is published, with its account and id', async () => {
    await fixture.service.admin('POST', '/api/v3/webhook/event', { internal: 'invoice.paid' })
    const webhook = await fixture.subscribe(['invoice.paid'])
    const ended = await fixture.run(['trigger', 'invoice.paid', '--id', 'INV-7', '--account', fixture.account])
    expect(ended).toMatchObject({ code: 0, stderr: '' })
    const event = await readEvent(readEventId(ended.stdout))
    expect(event).toMatchObject({ event: 'invoice.paid', resource_id: 'INV-7', account: fixture.account })
    expect(ended.stdout).toMatch(new RegExp(`success  attempts = 1  200  \\d+ ms  webhook ${webhook}`))
  })

  test('a failed delivery is printed with its reason, and an event without a subscriber is reported', async () => {
    await fixture.service.admin('POST', '/api/v3/webhook/event', { internal: 'invoice.voided' })
    const unheard = await fixture.run(['trigger', 'invoice.voided'])
    expect(unheard.stdout).toContain('No active webhook in its scope subscribes to it.')
    await fixture.subscribe(['invoice.voided'])
    fixture.receiver.behaveNext({ kind: 'status', status: 500 })
    const failed = await fixture.run(['trigger', 'invoice.voided'])
    expect(failed).toMatchObject({ code: 0 })
    expect(failed.stdout).toMatch(
      /^dispatch {2}\S+ {2}retrying {2}attempts = 1 {2}500 {2}http_5xx {2}\d+ ms {2}webhook /m,
    )
  })

  test.for([
    {
      args: ['user.create'],
      says: /^user\.create happens when POST \/api\/v3\/identity\/user succeeds\. Make that call;/,
    },
    {
      args: ['contract.find-one'],
      says: /^contract\.find-one happens when GET \S+ succeeds while some active webhook subscribes to it\./,
    },
    {
      args: ['contract.sign'],
      says: /^There is no event type contract\.sign\. Of contract there are .*contract\.create/,
    },
    { args: ['nothing.at-all'], says: /^There is no event type nothing\.at-all\. Register it with/ },
    { args: ['webhook.test'], says: /^webhook\.test needs a webhook: --webhook/ },
    { args: ['contract.create', '--id', 'x'], says: /^--id does not apply to contract\.create here\./ },
    {
      args: ['contract.update', '--id', '01996d3f-0000-7000-8000-00000000dead'],
      says: /was refused \(404 not_found\): There is no contract/,
    },
    {
      args: ['contract.create', '--account', '01996d3f-0000-7000-8000-00000000dead'],
      says: /was refused \(422 validation_failed\): account/,
    },
  ])('trigger $args: one sentence, exit code 1, and nothing has happened', async ({ args, says }) => {
    const before = await countContracts()
    const ended = await fixture.run(['trigger', ...args])
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr.trim()).toMatch(says)
    expect(ended.stderr.trim().split('\n')).toHaveLength(1)
    expect(await countContracts()).toBe(before)
  })

  test.for([
    {
      args: ['contract.update'],
      permissions: [
        'event-occurrence:*',
        'webhook-dispatch:find-all',
        'contract:*',
        'account:find-all',
        'account:create',
      ],
    },
    {
      args: ['order.paid'],
      permissions: ['event-occurrence:*', 'webhook-dispatch:find-all', 'event:find-all', 'event:publish'],
    },
  ])('trigger $args works with an API key that may do just what the guide names', async ({ args, permissions }) => {
    const created = await fixture.service.admin('POST', '/api/v3/webhook/event', { internal: 'order.paid' })
    expect([201, 409]).toContain(created.status)
    const made = await fixture.service.admin('POST', '/api/v3/identity/api-key', { name: 'Trigger', permissions })
    const ended = await fixture.run(['trigger', ...args], { SIGNALBOX_TOKEN: made.body.data.key })
    expect(ended).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(args[0]!) })
  })

  test('with the event queue off the error names the setting', async () => {
    await using quiet = await openCliFixture({ env: { ENABLE_API_EVENT_QUEUE: 'false' } })
    const ended = await quiet.run(['trigger', 'contract.update'])
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('ENABLE_API_EVENT_QUEUE') })
  })
})
