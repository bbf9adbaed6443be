import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest'
import type { JsonSchema } from '../../src/reference/openapi-document.ts'
import { createTestApp, type TestApp } from '../harness/app.ts'
import type { components } from './api.generated.ts'
import { buildTypedClient, DOCUMENT, type RequestOf, type TypedCall } from './typed-client.ts'

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
let call: TypedCall

beforeAll(async () => {
  app = await createTestApp()
  await app.app.server.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.app.server.server.address() as AddressInfo
  call = buildTypedClient({ origin: `http://127.0.0.1:${port}`, token: app.adminToken })
})
afterAll(() => app?.[Symbol.asyncDispose]())

function listNodes(node: unknown): Record<string, unknown>[] {
  if (typeof node !== 'object' || node === null) return []
  return [node as Record<string, unknown>, ...Object.values(node).flatMap(listNodes)]
}

const OPERATIONS = Object.values(DOCUMENT.paths).flatMap((item) => Object.values(item))

describe('types generated from openapi.json', () => {
  test('create, read and list a contract of a running service', async () => {
    const account: Schemas['Account'] = (await call('accountCreate', { body: { name: 'Example' } })).data
    const body: Schemas['CreateContract'] = { account: account.document_id, name: 'Lease', status: 'draft' }
    const created: Schemas['Contract'] = (await call('contractCreate', { body })).data
    const path = { id: created.document_id }
    const updated = await call('contractUpdate', { path, body: { status: 'active' } })
    expectTypeOf(updated.data.status).toEqualTypeOf<'draft' | 'active' | 'ended'>()
    const page = await call('contractFindAll', {
      query: { filters: [`account|eq|${account.document_id}`], count: true },
    })
    expectTypeOf(page).toEqualTypeOf<Schemas['ContractPage']>()
    expect(page.data).toEqual([updated.data])
    expect(page.pagination.total).toBe(1)
    expect((await call('contractFindOne', { path })).data).toEqual({ ...created, ...updated.data })
  })

  test('show a secret in the answer to create only, and a dispatch with its attempts', async () => {
    const body: Schemas['CreateWebhook'] = { url: 'https://example.com/hook', is_global: true }
    const created: Schemas['WebhookWithSecret'] = (await call('webhookCreate', { body })).data
    expect(created.secret).toMatch(/^whsec_/)
    const path = { id: created.document_id }
    const webhook: Schemas['Webhook'] = (await call('webhookFindOne', { path })).data
    expect(webhook.url).toBe(body.url)
    expect(webhook).not.toHaveProperty('secret')
    const { dispatch_id: id } = (await call('webhookTest', { path })).data
    const dispatch: Schemas['DispatchWithAttempts'] = (await call('webhookDispatchFindOne', { path: { id } })).data
    expect(dispatch).toMatchObject({ webhook: created.document_id, is_test: true, attempts_log: [] })
    expectTypeOf<Schemas['Webhook']>().not.toHaveProperty('secret')
    expectTypeOf<Schemas['DispatchWithAttempts']['attempts_log'][number]>().toEqualTypeOf<Schemas['Attempt']>()
    expectTypeOf<Schemas['Dispatch']['status']>().toEqualTypeOf<Schemas['DispatchStatus']>()
    expectTypeOf<Schemas['Webhook']['disabled_at']>().toEqualTypeOf<string | null>()
  })

  test('refuse what the API refuses: an unknown word, an unknown member, a body that is missing', () => {
    expectTypeOf<{ body: { name: string } }>().not.toExtend<RequestOf<'contractCreate'>>()
    expectTypeOf<{ path: { id: string }; body: { status: 'ajar' } }>().not.toExtend<RequestOf<'contractUpdate'>>()
    expectTypeOf<{ path: { id: string } }>().toExtend<RequestOf<'webhookDispatchReplay'>>()
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
