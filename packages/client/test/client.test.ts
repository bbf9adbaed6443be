import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import { createSignalbox, type Input, isProblem, type Schemas, type Signalbox } from '../src/client.ts'

let app: TestApp
let client: Signalbox
let baseUrl: string

beforeAll(async () => {
  app = await createTestApp()
  await app.app.server.listen({ port: 0, host: '127.0.0.1' })
  baseUrl = `http://127.0.0.1:${(app.app.server.server.address() as AddressInfo).port}`
  client = createSignalbox({ baseUrl, token: app.adminToken })
})
afterAll(() => app?.[Symbol.asyncDispose]())

const createAccount = async () => (await client.identity.accountCreate({ body: { name: 'Example' } })).data

describe('on a running service', () => {
  test('creates, changes, lists and reads a contract', async () => {
    const account: Schemas['Account'] = await createAccount()
    const body: Schemas['CreateContract'] = { account: account.document_id, name: 'Lease', status: 'draft' }
    const created: Schemas['Contract'] = (await client.contract.contractCreate({ body })).data
    const path = { id: created.document_id }
    const updated = (await client.contract.contractUpdate({ path, body: { status: 'active' } })).data
    expectTypeOf(updated.status).toEqualTypeOf<'draft' | 'active' | 'ended'>()
    const query = { filters: [`account|eq|${account.document_id}`], count: true }
    const page = await client.contract.contractFindAll({ query })
    expectTypeOf(page).toEqualTypeOf<Schemas['ContractPage']>()
    expect(page.data).toEqual([updated])
    expect(page.pagination.total).toBe(1)
    expect((await client.contract.contractFindOne({ path })).data).toEqual({ ...created, ...updated })
    expect((await client.contract.contractDelete({ path })).data.document_id).toBe(created.document_id)
  })

  test('shows a secret in the answer to create only, and a dispatch with its attempts', async () => {
    const body: Schemas['CreateWebhook'] = { url: 'https://example.com/hook', is_global: true }
    const created: Schemas['WebhookWithSecret'] = (await client.webhook.webhookCreate({ body })).data
    expect(created.secret).toMatch(/^whsec_/)
    const path = { id: created.document_id }
    const webhook: Schemas['Webhook'] = (await client.webhook.webhookFindOne({ path })).data
    expect(webhook.url).toBe(body.url)
    expect(webhook).not.toHaveProperty('secret')
    const tested = await client.webhook.webhookTest({ path })
    const found = await client.webhook.webhookDispatchFindOne({ path: { id: tested.data.dispatch_id } })
    const dispatch: Schemas['DispatchWithAttempts'] = found.data
    expect(dispatch).toMatchObject({ webhook: created.document_id, is_test: true, attempts_log: [] })
    expectTypeOf<Schemas['Webhook']>().not.toHaveProperty('secret')
    expectTypeOf<Schemas['DispatchWithAttempts']['attempts_log'][number]>().toEqualTypeOf<Schemas['Attempt']>()
    expectTypeOf<Schemas['Dispatch']['status']>().toEqualTypeOf<Schemas['DispatchStatus']>()
    expectTypeOf<Schemas['Webhook']['disabled_at']>().toEqualTypeOf<string | null>()
    const csv = await client.webhook.webhookExport({ query: { format: 'csv' } })
    expect(String(csv)).toContain(body.url)
  })

  test('reads a list to its end, page after page, and stops when its reader does', async () => {
    const account = (await createAccount()).document_id
    const names = ['a', 'b', 'c', 'd', 'e']
    for (const name of names) await client.contract.contractCreate({ body: { account, name, status: 'draft' } })
    const query = { filters: [`account|eq|${account}`], sort: 'created_at' as const, page_size: 2 }
    const read: string[] = []
    for await (const contract of client.contract.contractFindAll.each({ query })) read.push(contract.name)
    expect(read).toEqual(names)
    const { pagination } = await client.contract.contractFindAll({ query })
    const rest = client.contract.contractFindAll.each({ query: { ...query, cursor: pagination.next_cursor! } })
    expect((await rest.next()).value).toMatchObject({ name: 'c' })
    expect(await rest.return()).toEqual({ done: true, value: undefined })
  })

  test('throws a problem with its code, request id and the members that are wrong', async () => {
    const body = { url: 'http://example.com/hook', is_global: true }
    const refused = await client.webhook.webhookCreate({ body }).catch((error: unknown) => error)
    if (!isProblem(refused, 'validation_failed', 'webhook_inactive')) throw refused
    expectTypeOf(refused.code).toEqualTypeOf<'validation_failed' | 'webhook_inactive'>()
    expect(refused.status).toBe(422)
    expect(refused.requestId).toMatch(/^[\w-]{8,}$/)
    expect(refused.message).toContain(refused.requestId)
    const path = { id: '01997e2a-6c00-7000-8000-0000000000a1' }
    const missing = await client.webhook.webhookFindOne({ path }).catch((error: unknown) => error)
    expect([isProblem(missing), isProblem(missing, 'not_found'), isProblem(missing, 'conflict')]).toEqual([
      true,
      true,
      false,
    ])
    const nobody = createSignalbox({ baseUrl })
    await expect(nobody.identity.accountFindAll()).rejects.toMatchObject({ code: 'unauthenticated', status: 401 })
  })

  test('makes a change once for one key, however often it is asked for', async () => {
    const input = { body: { name: 'Once' }, idempotencyKey: 'order-1' }
    const [account, other] = [await client.identity.accountCreate(input), await client.identity.accountCreate(input)]
    expect(other.data.document_id).toBe(account.data.document_id)
    expect((await createAccount()).document_id).not.toBe((await createAccount()).document_id)
  })
})

test('the types refuse what the API refuses: an unknown word, an unknown member, a body or id that is missing', () => {
  const path = { id: 'a' }
  expectTypeOf<{ body: { name: string } }>().not.toExtend<Input<'contractCreate'>>()
  expectTypeOf<{ path: typeof path; body: { status: 'ajar' } }>().not.toExtend<Input<'contractUpdate'>>()
  expectTypeOf<{ path: typeof path; body: { status: 'ended' } }>().toExtend<Input<'contractUpdate'>>()
  expectTypeOf<{ path: typeof path }>().not.toExtend<Input<'contractUpdate'>>()
  expectTypeOf<{ path: typeof path }>().toExtend<Input<'webhookDispatchReplay'>>()
  expectTypeOf<object>().not.toExtend<Input<'contractFindOne'>>()
  // @ts-expect-error an unknown member
  const body: Schemas['CreateAccount'] = { name: 'Example', more: true }
  expect(Object.keys(body)).toContain('more')
})
