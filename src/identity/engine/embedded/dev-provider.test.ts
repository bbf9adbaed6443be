import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { buildManualClock } from '../../../../test/harness/run/manual-clock.ts'
import { buildKeyring } from '../../../base/keyring.ts'
import { systemRandom } from '../../../base/random.ts'
import { buildDevProvider } from './dev-provider.ts'
import { SAMPLE_PEOPLE, type SampleUser } from './sample-user.ts'

const BASE = 'http://localhost:3000'
const CALLBACK = `${BASE}/api/v3/auth/login/oauth/dev/callback`
const VERIFIER = 'v'.repeat(43)

const clock = buildManualClock()
const provider = buildDevProvider({
  clock,
  keyring: buildKeyring(['a'.repeat(32)], systemRandom),
  random: systemRandom,
  baseUrl: () => BASE,
})

const userOf = (id: SampleUser['id']) => SAMPLE_PEOPLE.find((user) => user.id === id)!

/** The parameters with which the browser comes back. */
function answerAs(id: SampleUser['id']): URLSearchParams {
  const request = {
    redirect_uri: CALLBACK,
    state: 'the state',
    nonce: 'the nonce',
    code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
  }
  return new URL(provider.answer(request, userOf(id))).searchParams
}

/** The status of the token endpoint for a new code. */
async function redeem(change: Record<string, string> = {}, code = answerAs('new').get('code') ?? ''): Promise<number> {
  const form = { grant_type: 'authorization_code', code, code_verifier: VERIFIER, redirect_uri: CALLBACK, ...change }
  const body = new URLSearchParams(form).toString()
  return (await provider.enabled.answer!(`${BASE}/auth/dev/token`, { method: 'POST', body })).status
}

test('a code is redeemed once, within a minute, with its verifier and its redirect_uri', async () => {
  const code = answerAs('new').get('code') ?? ''
  expect([await redeem({}, code), await redeem({}, code)]).toEqual([200, 400])
  expect(await redeem({ code_verifier: 'w'.repeat(43) })).toBe(400)
  expect(await redeem({ redirect_uri: `${CALLBACK}/other` })).toBe(400)
  const [late, later] = [answerAs('new').get('code') ?? '', answerAs('new').get('code') ?? '']
  clock.advance(59_999)
  expect(await redeem({}, late)).toBe(200)
  clock.advance(1)
  expect(await redeem({}, later)).toBe(400)
})

test('the user who refuses comes back with an error and no code, every other with a code', () => {
  for (const { id } of SAMPLE_PEOPLE) {
    const answer = answerAs(id)
    expect([answer.get('error'), answer.has('code')], id).toEqual(
      id === 'denied' ? ['access_denied', false] : [null, true],
    )
    expect([answer.get('state'), answer.get('iss')]).toEqual(['the state', `${BASE}/auth/dev`])
  }
})
