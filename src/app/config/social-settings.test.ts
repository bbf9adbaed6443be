import { describe, expect, test } from 'vitest'
import { APPLE_KEY } from '../../../test/harness/fakes/provider/personalities.ts'
import { readSocialSettings } from './social-settings.ts'

const namesOf = (env: Record<string, string>) =>
  readSocialSettings(env, { appEnv: 'production' }).providers.map(({ name }) => name)
const faultOf = (env: Record<string, string>) => readSocialSettings(env, { appEnv: 'production' }).faults.join('\n')

const GOOGLE = { SOCIAL_GOOGLE_CLIENT_ID: 'id', SOCIAL_GOOGLE_CLIENT_SECRET: 'secret' }
const APPLE = {
  SOCIAL_APPLE_CLIENT_ID: 'id',
  SOCIAL_APPLE_CLIENT_SECRET: APPLE_KEY,
  SOCIAL_APPLE_TEAM_ID: 'T',
  SOCIAL_APPLE_KEY_ID: 'K',
}

describe('the settings of social login', () => {
  test('enable nobody by default, and ignore empty values', () => {
    expect(readSocialSettings({ SOCIAL_GOOGLE_CLIENT_ID: '' }, { appEnv: 'production' })).toEqual({
      providers: [],
      faults: [],
    })
  })

  test('enable a provider by its client id, built-in ones in their order and before the others', () => {
    const company = { SOCIAL_ACME_SSO_CLIENT_ID: 'id', SOCIAL_ACME_SSO_ISSUER: 'https://login.acme.example' }
    const github = { SOCIAL_GITHUB_CLIENT_ID: 'id', SOCIAL_GITHUB_CLIENT_SECRET: 's' }
    expect(namesOf({ ...company, ...github, ...GOOGLE, ...APPLE })).toEqual(['google', 'apple', 'github', 'acme-sso'])
  })

  test('label a generic provider by its name', () => {
    const { providers } = readSocialSettings(
      { SOCIAL_ACME_SSO_CLIENT_ID: 'id', SOCIAL_ACME_SSO_ISSUER: 'https://login.acme.example/' },
      { appEnv: 'production' },
    )
    expect([providers[0]?.declaration.label, providers[0]?.base?.()]).toEqual([
      'Acme sso',
      'https://login.acme.example',
    ])
  })

  test.each([
    ['SOCIAL_GOOGLE_CLIENT_SECRET is required', { SOCIAL_GOOGLE_CLIENT_ID: 'id' }],
    ['SOCIAL_GOOGLE_CLIENT_ID is required', { SOCIAL_GOOGLE_CLIENT_SECRET: 's' }],
    ['SOCIAL_ACME_ISSUER is required', { SOCIAL_ACME_CLIENT_ID: 'id' }],
    ['SOCIAL_ACME_ISSUER must be an https URL', { SOCIAL_ACME_CLIENT_ID: 'id', SOCIAL_ACME_ISSUER: 'acme' }],
    ['outside development', { SOCIAL_ACME_CLIENT_ID: 'id', SOCIAL_ACME_ISSUER: 'http://acme.example' }],
    ['no query', { SOCIAL_ACME_CLIENT_ID: 'id', SOCIAL_ACME_ISSUER: 'https://acme.example/?a=b' }],
    ['SOCIAL_GOOGLE_TRUST_EMAIL must be true or false', { ...GOOGLE, SOCIAL_GOOGLE_TRUST_EMAIL: 'yes' }],
    ['SOCIAL_APPLE_TEAM_ID is required', { ...APPLE, SOCIAL_APPLE_TEAM_ID: '' }],
    ['SOCIAL_APPLE_CLIENT_SECRET must be the private key', { ...APPLE, SOCIAL_APPLE_CLIENT_SECRET: 'not a key' }],
    ['SOCIAL_LOCAL_CLIENT_ID names local', { SOCIAL_LOCAL_CLIENT_ID: 'id', SOCIAL_LOCAL_ISSUER: 'https://a.example' }],
    ['SOCIAL_DEV_CLIENT_ID names dev', { SOCIAL_DEV_CLIENT_ID: 'id', SOCIAL_DEV_ISSUER: 'https://a.example' }],
  ])('refuse with a sentence about "%s"', (sentence, env) => {
    expect(faultOf(env)).toContain(sentence)
    expect(faultOf(env)).not.toContain('secret box')
  })

  test('need the client id alone with a managed engine, which keeps the credentials', () => {
    const env = { SOCIAL_APPLE_CLIENT_ID: 'on', SOCIAL_ACME_CLIENT_ID: 'on' }
    const { providers, faults } = readSocialSettings(env, { appEnv: 'production', isManaged: true })
    expect([providers.map(({ name }) => name), faults]).toEqual([['apple', 'acme'], []])
  })

  test('a fault never shows a value', () => {
    expect(faultOf({ ...APPLE, SOCIAL_APPLE_CLIENT_SECRET: 'value-of-the-secret' })).not.toContain(
      'value-of-the-secret',
    )
  })
})
