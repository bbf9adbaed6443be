import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import createClient, { type Client, type FetchOptions } from 'openapi-fetch'
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest'
import type { JsonSchema, OpenApiDocument } from '../../src/http/reference/openapi-document.ts'
import { createTestApp, type TestApp } from '../harness/app/app.ts'
import type { components, operations, paths } from './api.generated.ts'

/** The committed document: what a client of another language is generated from. */
const DOCUMENT = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')) as OpenApiDocument

type Schemas = components['schemas']

/** What a client speaks of. */
const NAMES = [
  ...['Account', 'AccountMember', 'ApiKey', 'ApiKeyWithKey', 'Attempt', 'AuditEntry', 'CatalogueStatus', 'Contract'],
  ...['DashboardSummary', 'Dispatch', 'DispatchWithAttempts', 'Envelope', 'EventOccurrence', 'EventType'],
  ...['HealthComponent', 'LoginPayload', 'Pagination', 'Permission', 'Problem', 'ReplayJob', 'Role', 'Session'],
  ...['Subscription', 'User', 'Webhook', 'WebhookWithSecret'],
  ...['CreateAccount', 'CreateApiKey', 'CreateContract', 'CreateEventType', 'CreateReplayJob', 'CreateRole'],
  ...['CreateSubscription', 'CreateUser', 'CreateWebhook', 'PublishEvents', 'ReplaceEventSet', 'ReplayDispatch'],
  ...['AccountInvitation', 'AccountLimit', 'AccountLimits', 'AttemptTimings', 'Identity', 'ListedSession'],
  ...['MembershipPermissions', 'OauthClient', 'OauthClientWithSecret', 'OauthGrant', 'OauthScope', 'Passkey'],
  ...['ProvisioningDelivery', 'ProvisioningJob', 'ProvisioningTarget', 'RealtimeChannelEvent', 'RealtimeMessage'],
  ...['SessionFacts', 'CreateAccountInvitation', 'CreateOauthClient', 'CreateProvisioningTarget'],
  ...['UpdateAccount', 'UpdateContract', 'UpdateRole', 'UpdateSubscription', 'UpdateUser', 'UpdateWebhook'],
] as const satisfies readonly (keyof Schemas)[]

let app: TestApp
/** A client of the API, typed by nothing but `openapi.json`. */
let client: Client<paths>

beforeAll(async () => {
  app = await createTestApp()
  await app.app.server.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.app.server.server.address() as AddressInfo
  client = createClient<paths>({
    baseUrl: `http://127.0.0.1:${port}`,
    headers: { authorization: `Bearer ${app.adminToken}` },
  })
})
afterAll(() => app?.[Symbol.asyncDispose]())

/** The answer. Throws the problem. */
function unwrap<Answer>({ data, error }: { data?: Answer; error?: Schemas['Problem'] }): Answer {
  if (data === undefined) throw new Error(JSON.stringify(error))
  return data
}

function listNodes(node: unknown): Record<string, unknown>[] {
  if (typeof node !== 'object' || node === null) return []
  return [node as Record<string, unknown>, ...Object.values(node).flatMap(listNodes)]
}

const OPERATIONS = Object.values(DOCUMENT.paths).flatMap((item) => Object.values(item))

describe('types generated from openapi.json', () => {
  test('create, read and list a contract of a running service', async () => {
    const made = await client.POST('/api/v3/identity/account', { body: { name: 'Example' } })
    const account: Schemas['Account'] = unwrap(made).data
    const body: Schemas['CreateContract'] = { account: account.document_id, name: 'Lease', status: 'draft' }
    const created: Schemas['Contract'] = unwrap(await client.POST('/api/v3/contract/contract', { body })).data
    const params = { path: { id: created.document_id } }
    const changed = await client.PATCH('/api/v3/contract/contract/{id}', { params, body: { status: 'active' } })
    const updated = unwrap(changed).data
    expectTypeOf(updated.status).toEqualTypeOf<'draft' | 'active' | 'ended'>()
    const query = { filters: [`account|eq|${account.document_id}`], count: true }
    const page = unwrap(await client.GET('/api/v3/contract/contract', { params: { query } }))
    expectTypeOf(page).toEqualTypeOf<Schemas['ContractPage']>()
    expect(page.data).toEqual([updated])
    expect(page.pagination.total).toBe(1)
    const read = unwrap(await client.GET('/api/v3/contract/contract/{id}', { params }))
    expect(read.data).toEqual({ ...created, ...updated })
  })

  test('show a secret in the answer to create only, and a dispatch with its attempts', async () => {
    const body: Schemas['CreateWebhook'] = { url: 'https://example.com/hook', is_global: true }
    const made = await client.POST('/api/v3/webhook/webhook', { body })
    const created: Schemas['WebhookWithSecret'] = unwrap(made).data
    expect(created.secret).toMatch(/^whsec_/)
    const params = { path: { id: created.document_id } }
    const read = await client.GET('/api/v3/webhook/webhook/{id}', { params })
    const webhook: Schemas['Webhook'] = unwrap(read).data
    expect(webhook.url).toBe(body.url)
    expect(webhook).not.toHaveProperty('secret')
    const tested = await client.POST('/api/v3/webhook/webhook/{id}/test', { params })
    const ofTest = { path: { id: unwrap(tested).data.dispatch_id } }
    const found = await client.GET('/api/v3/webhook/dispatch/{id}', { params: ofTest })
    const dispatch: Schemas['DispatchWithAttempts'] = unwrap(found).data
    expect(dispatch).toMatchObject({ webhook: created.document_id, is_test: true, attempts_log: [] })
    expectTypeOf<Schemas['Webhook']>().not.toHaveProperty('secret')
    expectTypeOf<Schemas['DispatchWithAttempts']['attempts_log'][number]>().toEqualTypeOf<Schemas['Attempt']>()
    expectTypeOf<Schemas['Dispatch']['status']>().toEqualTypeOf<Schemas['DispatchStatus']>()
    expectTypeOf<Schemas['Webhook']['disabled_at']>().toEqualTypeOf<string | null>()
  })

  test('refuse what the API refuses: an unknown word, an unknown member, a body that is missing', () => {
    const params = { path: { id: 'a' } }
    expectTypeOf<{ body: { name: string } }>().not.toExtend<FetchOptions<operations['contractCreate']>>()
    expectTypeOf<{ params: typeof params; body: { status: 'ajar' } }>().not.toExtend<
      FetchOptions<operations['contractUpdate']>
    >()
    expectTypeOf<{ params: typeof params; body: { status: 'ended' } }>().toExtend<
      FetchOptions<operations['contractUpdate']>
    >()
    expectTypeOf<{ params: typeof params }>().not.toExtend<FetchOptions<operations['contractUpdate']>>()
    expectTypeOf<{ params: typeof params }>().toExtend<FetchOptions<operations['webhookDispatchReplay']>>()
    // @ts-expect-error an unknown member
    const body: Schemas['CreateAccount'] = { name: 'Example', more: true }
    expect(DOCUMENT.components.schemas?.CreateAccount).toMatchObject({ additionalProperties: false })
    expect(Object.keys(body)).toContain('more')
  })
})

describe('openapi.json', () => {
  test('names every row and body that a client speaks of', () => {
    expect(NAMES.filter((name) => DOCUMENT.components.schemas?.[name] === undefined)).toEqual([])
  })

  test('gives every body and every JSON answer a name', () => {
    for (const { operationId, requestBody, responses } of OPERATIONS) {
      const contents = [requestBody, ...Object.values(responses)].flatMap(
        (one) => one?.content?.['application/json'] ?? [],
      )
      for (const { schema } of contents) {
        const named = schema.type === 'array' ? schema.items : schema
        expect(named?.$ref, operationId).toMatch(/^#\/components\/schemas\/\w+$/)
      }
    }
  })

  test('uses enum for fixed words and types for null, with no alternatives but a named schema or null', () => {
    for (const { anyOf = [] } of listNodes(DOCUMENT) as JsonSchema[])
      for (const one of anyOf) expect([{ $ref: one.$ref }, { type: 'null' }]).toContainEqual(one)
    for (const node of listNodes(DOCUMENT) as JsonSchema[]) {
      if (!Array.isArray(node.enum)) continue
      expect(node.type).toEqual(node.enum.includes(null) ? ['string', 'null'] : 'string')
    }
  })

  test('gives every object with members a name, also inside of others', () => {
    const schemas = Object.values(DOCUMENT.components.schemas ?? {})
    const inner = schemas.flatMap((schema) => listNodes(schema).filter((node) => node !== schema))
    const nameless = [...listNodes(DOCUMENT.paths), ...inner].filter(
      ({ type, properties }) => [type].flat().includes('object') && Object.keys(properties ?? {}).length > 0,
    )
    expect(nameless).toEqual([])
  })

  test('lists the words of every text that takes one of some', () => {
    const words = /^`[\w-]+`(?:, `[\w-]+`)* or `[\w-]+`\./
    const loose = listNodes(DOCUMENT).filter(
      ({ type, enum: listed, description }) =>
        [type].flat().includes('string') && !listed && words.test(String(description)),
    )
    expect(loose).toEqual([])
  })

  test('gives ids and times a format', () => {
    for (const schema of Object.values(DOCUMENT.components.schemas ?? {})) {
      for (const [name, member] of Object.entries(schema.properties ?? {})) {
        if (/_at$/.test(name)) expect(member.format, name).toBe('date-time')
        if (name === 'document_id') expect(member.format, name).toBe('uuid')
      }
    }
  })

  test('describes each problem once, and operations refer to it', () => {
    const problems = OPERATIONS.flatMap(({ responses }) => Object.entries(responses)).filter(
      ([status]) => status >= '400',
    )
    expect(problems.length).toBeGreaterThan(400)
    for (const [, problem] of problems) expect(Object.keys(problem)).toEqual(['$ref'])
  })
})
