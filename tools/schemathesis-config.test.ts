import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { OpenApiDocument } from '../src/http/reference/openapi-document.ts'
import { renderSchemathesisConfig } from './schemathesis-config.ts'

const { paths } = JSON.parse(readFileSync(new URL('../openapi.json', import.meta.url), 'utf8')) as Pick<
  OpenApiDocument,
  'paths'
>

const KINDS = [
  ...['account', 'apiKey', 'contract', 'dispatch', 'event', 'eventType', 'oauthClient'],
  ...['provisioningDelivery', 'provisioningJob', 'provisioningTarget'],
  ...['replayJob', 'role', 'session', 'subscription', 'user', 'webhook'],
]
const ids = Object.fromEntries([...KINDS, 'connection'].map((kind) => [kind, `id of ${kind}`]))
const config = renderSchemathesisConfig(ids as Parameters<typeof renderSchemathesisConfig>[0], 'http://sink.test/')

/**
 * A user has an identity only after a sign-in with a provider; an invitation, a passkey and a grant are only deleted by
 * id; a picture is read by a key that its upload makes, and a channel by a name.
 */
const WITHOUT_ROW = [
  '/api/v3/identity/identity/{id}',
  '/api/v3/identity/account/{id}/invitation/{invitation}',
  '/api/v3/auth/factor/passkey/{id}',
  '/api/v3/oauth/grant/{id}',
  '/api/v3/auth/picture/{picture}',
  '/api/v3/realtime/channel/{name}/member',
]

test('every path with an id is called with the id of a row that exists', () => {
  const patterns = [...config.matchAll(/include-path-regex = (".*")/g)].map(([, text]) => new RegExp(JSON.parse(text!)))
  const uncovered = Object.keys(paths).filter(
    (path) => path.includes('{') && !patterns.some((pattern) => pattern.test(path)),
  )
  expect(uncovered.filter((path) => !WITHOUT_ROW.includes(path))).toEqual([])
  for (const pattern of patterns) expect(Object.keys(paths).some((path) => pattern.test(path))).toBe(true)
})

test('a deletion names no row that another test case reads', () => {
  const blocks = config.split('[[operations]]').filter((block) => block.includes('path.id'))
  // Webhooks stand in two paths: their own, and that of their breakdown.
  expect(blocks.length).toBe(KINDS.length + 1)
  for (const block of blocks) expect(block).toContain('exclude-method = ["DELETE"]')
})

test('every binding names a dictionary, and every dictionary holds its id', () => {
  for (const [, name] of config.matchAll(/dictionary = "(\w+)"/g))
    expect(config).toContain(
      `[dictionaries.${name}]\nvalues = [${JSON.stringify(ids[name!] ?? (name === 'provider' ? 'dev' : 'http://sink.test/'))}]`,
    )
})
