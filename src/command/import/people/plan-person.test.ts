import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { JsonRow } from './json-rows.ts'
import type { ForeignPerson, PeopleSource } from './person.ts'
import { type PeopleRules, planPerson } from './plan-person.ts'
import { keycloak } from './source/keycloak.ts'
import { logto } from './source/logto.ts'
import { supabaseAuth } from './source/supabase-auth.ts'

const now = new Date('2026-11-26T10:00:00Z')
const id = randomUUID()

function plan(source: PeopleSource, rows: JsonRow[], rules: Partial<PeopleRules> = {}) {
  const settings = new Map<string, unknown>()
  for (const row of rows) source.collectSetting?.(settings, row)
  const people = rows.flatMap((row) => source.readRow(row, { settings, now }))
  const planned = planPerson(people.find(({ kind }) => kind === 'person') as ForeignPerson, {
    source,
    providers: new Set(['google', 'github', 'gitlab', 'acme']),
    publicProviders: new Set(['google', 'github']),
    providerMap: new Map(),
    rpId: 'id.example.com',
    sourceRpId: undefined,
    now,
    ...rules,
  })
  if (planned.kind !== 'import') throw new Error(planned.reason)
  return {
    links: planned.user.identities.map(({ provider, subject }) => `${provider} ${subject}`),
    notes: planned.notes,
  }
}

const row = (value: unknown): JsonRow => ({ member: null, value })
const ofSupabase = (provider: string, data: object = {}) =>
  row({ id, email: 'a@example.com', identities: [{ provider, provider_id: '7', identity_data: data }] })
const ofLogto = (target: string) =>
  row({ id: 'f3k9', primary_email: 'a@example.com', identities: { [target]: { userId: '7' } } })
const ofKeycloak = (alias: string, provider?: object): JsonRow[] => [
  {
    member: 'users',
    value: { id, email: 'a@example.com', federatedIdentities: [{ identityProvider: alias, userId: '7' }] },
  },
  ...(provider ? [{ member: 'identityProviders', value: { alias, ...provider } }] : []),
]
const named = (there: string, here: string) => ({ providerMap: new Map([[there, here]]) })

test('an identity is linked to the public server of its name, by the subject', () => {
  expect(plan(supabaseAuth, [ofSupabase('github', { iss: 'https://api.github.com' })]).links).toEqual(['github 7'])
  expect(plan(supabaseAuth, [ofSupabase('google')]).links).toEqual(['google 7'])
  expect(plan(logto, [ofLogto('github')]).links).toEqual(['github 7'])
  expect(plan(keycloak, ofKeycloak('login', { providerId: 'github', config: { clientId: 'x' } })).links).toEqual([
    'github 7',
  ])
})

test.each<[string, PeopleSource, JsonRow[], string]>([
  [
    'a GitHub of their own at Supabase',
    supabaseAuth,
    [ofSupabase('github', { iss: 'https://git.acme.example' })],
    'github',
  ],
  ['a GitLab of our own', supabaseAuth, [ofSupabase('gitlab')], 'gitlab'],
  [
    'a GitHub of their own at Keycloak',
    keycloak,
    ofKeycloak('github', { providerId: 'github', config: { baseUrl: 'https://git' } }),
    'github',
  ],
  ['an OpenID provider with the alias of another', keycloak, ofKeycloak('google', { providerId: 'oidc' }), 'google'],
  ['a SAML provider', keycloak, ofKeycloak('google', { providerId: 'saml' }), 'google'],
  ['a provider that the export does not declare', keycloak, ofKeycloak('google'), 'google'],
  ['a provider without settings here', logto, [ofLogto('discord')], 'discord'],
])('an identity at %s is linked only where the operator names the provider', (_name, source, rows, there) => {
  const { links, notes } = plan(source, rows)
  expect(links).toEqual([])
  expect(notes.join()).toMatch(/left out: no provider \S+ is enabled here for it; name one with --provider/)
  expect(plan(source, rows, named(there, 'acme')).links).toEqual(['acme 7'])
  expect(plan(source, rows, named(there, 'unknown')).links).toEqual([])
})

test.each(['constructor', '__proto__', 'toString', '', '\u0000', '\u202egoogle', 'a'.repeat(5000)])(
  'a provider with the name %j is left out',
  (name) => {
    expect(plan(supabaseAuth, [ofSupabase(name)]).links).toEqual([])
    const identities = JSON.parse(`{${JSON.stringify(name)}:{"userId":"7"}}`)
    const person = row({
      id: 'f3k9',
      primary_email: 'a@example.com',
      identities,
      password_encrypted: 'x',
      password_encryption_method: name,
    })
    expect(plan(logto, [person]).links).toEqual([])
    expect(plan(keycloak, ofKeycloak(name, { providerId: name })).links).toEqual([])
  },
)

test('an application of an odd type is none of a machine', () => {
  const application = {
    id: 'k2j8',
    name: 'Acme',
    type: 'constructor',
    oidc_client_metadata: { redirectUris: ['https://a.example/cb'] },
  }
  expect(logto.readRow(row(application), { settings: new Map(), now })).toMatchObject([{ hindrance: undefined }])
})
