import { beforeEach, describe, expect, test } from 'vitest'
import { startSupabaseSimulator } from '../../../../test/harness/fakes/supabase-simulator/simulator.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { parseAllowedTargets } from '../../../outbound/guard/callback-url.ts'
import { buildGuardedFetch } from '../../../outbound/guarded-fetch.ts'
import { checkServer, judgeServer } from './supabase-check.ts'
import { buildSupabaseClient } from './supabase-client.ts'

const simulator = await openForFile(startSupabaseSimulator(() => Date.now()))
beforeEach(() => {
  simulator.off.clear()
  simulator.fault = undefined
  simulator.rules.autoConfirms = false
})

/** The warnings of a start with these providers. */
async function start(providers: readonly string[]): Promise<string> {
  const warnings: unknown[] = []
  const fetch = buildGuardedFetch({
    lookup: async () => [],
    rules: { allowHttp: true, allowedPrivateTargets: parseAllowedTargets('127.0.0.1') },
  })
  const client = buildSupabaseClient({ url: simulator.url, anonKey: undefined, fetch })
  await checkServer({ client, providers, logger: { warn: (...given: unknown[]) => void warnings.push(given.at(-1)) } })
  return warnings.join('\n')
}

describe('the check of a Supabase Auth server', () => {
  test('finds nothing at a server that has every provider on, also custom ones, and confirms addresses by mail', async () => {
    expect(await start(['google', 'microsoft', 'acme-sso'])).toBe('')
  })

  test('names a provider that is off there, by its name there and here', async () => {
    simulator.off.add('azure')
    expect(await start(['google', 'microsoft'])).toMatch(/provider azure is off.*no user can sign in with microsoft/)
  })

  test('warns of addresses that the server confirms by itself', async () => {
    simulator.rules.autoConfirms = true
    expect(await start(['google'])).toContain('confirms addresses by itself')
  })

  test('says that the server does not answer, and lets the start go on', async () => {
    simulator.fault = 'down'
    expect(await start(['google'])).toContain('does not answer')
  })

  test.each([
    ['symmetric keys, of which none is published', { keys: [] }, true, 1],
    ['an RSA key alone', { keys: [{ kty: 'RSA', alg: 'RS256' }] }, true, 1],
    ['an ES256 key', { keys: [{ kty: 'EC', crv: 'P-256' }] }, true, 0],
    ['symmetric keys without its OAuth server', { keys: [] }, false, 0],
  ])('says whether tokens of apps can be verified: %s', (_name, keys, isOAuthOn, count) => {
    expect(judgeServer({ settings: {}, keys, isOAuthOn }, [])).toHaveLength(count)
  })
})
