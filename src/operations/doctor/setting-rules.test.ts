import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { TEST_SECRETS } from '../../../test/harness/app/test-secrets.ts'
import { measureThread } from '../../../test/harness/run/linear.ts'
import { estimateBits, isGuessableSecret, isGuessableToken } from './secret-strength.ts'
import { describeRefused, findRefusedCode, findRefusedSettings, type JudgedSettings } from './setting-rules.ts'

const GOOD: JudgedSettings = {
  appEnv: 'production',
  nodeEnv: 'production',
  baseUrl: 'https://signalbox.example.com',
  secrets: { SECRET_KEY: [randomBytes(32).toString('base64')] },
  metricsToken: undefined,
}
const codesOf = (given: Partial<JudgedSettings>) => findRefusedSettings({ ...GOOD, ...given }).map(({ code }) => code)

describe('production', () => {
  test('starts with an https address, or an http one of this machine', () => {
    for (const baseUrl of [
      'https://signalbox.example.com',
      'http://localhost:3000',
      'http://127.0.0.1',
      'http://[::1]',
    ])
      expect(codesOf({ baseUrl }), baseUrl).toEqual([])
  })

  test('does not start without BASE_URL, or with an http one that others reach', () => {
    for (const baseUrl of [
      undefined,
      'http://signalbox.example.com',
      'http://10.0.0.7',
      'http://localhost.example.com',
    ])
      expect(codesOf({ baseUrl }), baseUrl).toEqual(['base_url_missing'])
  })

  test('does not start with a secret that can be guessed, and certification neither', () => {
    for (const appEnv of ['production', 'certification'])
      expect(
        codesOf({ appEnv, secrets: { SECRET_KEY: ['a'.repeat(32)], SESSION_JWT_SECRET: ['b'.repeat(64)] } }),
      ).toEqual(['secret_guessable', 'secret_guessable'])
    const [strong = '', weak] = [GOOD.secrets.SECRET_KEY?.[0], 'a'.repeat(32)]
    expect(codesOf({ secrets: { SECRET_KEY: [strong, weak] } }), 'a key that is rotated out').toEqual([])
    expect(codesOf({ secrets: { SESSION_JWT_SECRET: [strong, weak] } })).toEqual(['secret_guessable'])
    expect(codesOf({ metricsToken: 'a'.repeat(16) })).toEqual(['secret_guessable'])
  })
})

describe('development', () => {
  test('does not start beside NODE_ENV=production', () => {
    expect(codesOf({ appEnv: 'development', baseUrl: undefined })).toEqual(['environment_contradicts'])
    for (const nodeEnv of [undefined, 'development', 'test'])
      expect(codesOf({ appEnv: 'development', baseUrl: undefined, nodeEnv })).toEqual([])
    for (const appEnv of ['certification', 'test', 'production']) expect(codesOf({ appEnv })).toEqual([])
  })

  test.each(['https://signalbox.example.com', 'http://8.8.8.8:3000', 'https://[2606:4700::1]', 'https://a.ngrok.app'])(
    'does not start as %s, which others reach',
    (baseUrl) => {
      expect(codesOf({ appEnv: 'development', nodeEnv: undefined, baseUrl })).toEqual(['base_url_public'])
    },
  )

  test.each([
    'http://localhost:3000',
    'http://127.0.0.1:3000',
    'http://[::1]:3000',
    'http://192.168.0.7:3000',
    'http://[fd00::1]',
    'http://signalbox:3000',
    'https://service.test',
    'http://machine.local',
    'http://host.docker.internal:3000',
  ])('starts as %s', (baseUrl) => {
    expect(codesOf({ appEnv: 'development', nodeEnv: undefined, baseUrl })).toEqual([])
  })
})

test('the sentence of each refusal has its code, and none has the value', () => {
  const refused = [
    ...findRefusedSettings({ ...GOOD, baseUrl: undefined }),
    ...findRefusedSettings({ ...GOOD, baseUrl: 'http://secret.example.com' }),
    ...findRefusedSettings({ ...GOOD, secrets: { SECRET_KEY: ['secretsecretsecretsecretsecretsecret'] } }),
    ...findRefusedSettings({ ...GOOD, appEnv: 'development', baseUrl: 'http://secret.example.com' }),
  ]
  expect(refused).toHaveLength(5)
  for (const fault of refused) {
    expect(findRefusedCode(describeRefused(fault))).toBe(fault.code)
    expect(describeRefused(fault)).not.toContain('secret.example')
    expect(describeRefused(fault)).not.toContain('secretsecret')
  }
})

describe('the strength of a secret', () => {
  test.each([
    'a'.repeat(32),
    'ab'.repeat(20),
    'password'.repeat(4),
    'abcdefghijklmnopqrstuvwxyz0123456789',
    '0123456789abcdef'.repeat(4),
    'zyxwvutsrqponmlkjihgfedcba9876543210',
    'qwertyuiopasdfghjklzxcvbnm1234567890',
    'changeme-changeme-changeme-changeme',
    `${'a'.repeat(40)}B1!`,
  ])('%s can be guessed', (secret) => {
    expect(isGuessableSecret(secret)).toBe(true)
  })

  test('random text is none that can be guessed, in each usual form', () => {
    for (let round = 0; round < 2_000; round += 1) {
      // The same texts in each run: a random token of this length is refused once in some 300,000 times.
      const bytes = createHash('sha512').update(`${round}`).digest()
      for (const secret of [bytes.subarray(0, 16).toString('hex'), bytes.subarray(0, 32).toString('base64')])
        expect(isGuessableSecret(secret), secret).toBe(false)
      const token = bytes.subarray(0, 12).toString('base64url')
      expect(isGuessableToken(token), token).toBe(false)
    }
    for (const secret of Object.values(TEST_SECRETS).flat()) expect(isGuessableSecret(secret), secret).toBe(false)
  })

  test('is judged in linear time', () => {
    const long = randomBytes(48_000).toString('base64')
    expect(measureThread(() => void estimateBits(long))).toBeLessThan(2_000)
  })
})
