import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Schemas } from '../packages/client/src/client.ts'
import type { JsonSchema, OpenApiDocument } from '../src/http/reference/openapi-document.ts'

/** The committed document: what a client of another language is generated from. */
const DOCUMENT = JSON.parse(readFileSync(new URL('../openapi.json', import.meta.url), 'utf8')) as OpenApiDocument

/** Names that a client uses. */
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

function listNodes(node: unknown): Record<string, unknown>[] {
  if (typeof node !== 'object' || node === null) return []
  return [node as Record<string, unknown>, ...Object.values(node).flatMap(listNodes)]
}

const OPERATIONS = Object.values(DOCUMENT.paths).flatMap((item) => Object.values(item))

describe('openapi.json', () => {
  test('names every row and body that a client speaks of', () => {
    expect(NAMES.filter((name) => DOCUMENT.components.schemas?.[name] === undefined)).toEqual([])
  })

  test('gives every body and every JSON answer a name', () => {
    for (const { operationId, requestBody, responses } of OPERATIONS) {
      const contents = [requestBody, ...Object.values(responses)].flatMap(
        (item) => item?.content?.['application/json'] ?? [],
      )
      for (const { schema } of contents) {
        const named = schema.type === 'array' ? schema.items : schema
        expect(named?.$ref, operationId).toMatch(/^#\/components\/schemas\/\w+$/)
      }
    }
  })

  test('uses enum for fixed words and types for null, with no alternatives but a named schema or null', () => {
    for (const { anyOf = [] } of listNodes(DOCUMENT) as JsonSchema[])
      for (const schema of anyOf) expect([{ $ref: schema.$ref }, { type: 'null' }]).toContainEqual(schema)
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
