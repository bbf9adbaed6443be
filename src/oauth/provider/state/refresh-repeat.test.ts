import type { KoaContextWithOIDC } from 'oidc-provider'
import { expect, test } from 'vitest'
import { buildManualClock } from '../../../../test/harness/run/manual-clock.ts'
import { bindRefresh, isRefreshRepeat } from './refresh-repeat.ts'
import type { FoundState } from './state.store.ts'

interface Redemption {
  clientId?: string
  method?: string
  ip?: string
  route?: string
  proof?: string
}

const proofOf = (x: string) =>
  `${Buffer.from(JSON.stringify({ jwk: { kty: 'EC', crv: 'P-256', x, y: 'y' } })).toString('base64url')}.e30.x`

function buildContext(given: Redemption = {}): KoaContextWithOIDC {
  const { clientId = 'app', method = 'none', ip = '192.0.2.1', route = 'token', proof = '' } = given
  const client = { clientId, tokenEndpointAuthMethod: method }
  return { ip, get: () => proof, oidc: { route, client } } as unknown as KoaContextWithOIDC
}

/** Whether `second` gets the answer of `first`, `afterMs` after it. */
function isRepeat(first: Redemption, second: Redemption, { afterMs = 0, repeatMs = 10_000 } = {}): boolean {
  const clock = buildManualClock()
  const found = {
    payload: { clientId: 'app' },
    consumedAt: new Date(clock.now()),
    consumedBy: bindRefresh(buildContext(first)),
  } as FoundState
  clock.advance(afterMs)
  return isRefreshRepeat({ refresh: { repeatMs }, machineClock: clock }, found, buildContext(second))
}

test('a repeat is answered until its time is over', () => {
  expect(isRepeat({}, {}, { afterMs: 9_999 })).toBe(true)
  expect(isRepeat({}, {}, { afterMs: 10_000 })).toBe(false)
  expect(isRepeat({}, {}, { repeatMs: 0 })).toBe(false)
})

test.each<[name: string, isAnswered: boolean, first: Redemption, second: Redemption]>([
  ['another client', false, {}, { clientId: 'other' }],
  ['another address of a public client', false, {}, { ip: '192.0.2.2' }],
  [
    'another address of a confidential client',
    true,
    { method: 'private_key_jwt' },
    { method: 'private_key_jwt', ip: '192.0.2.2' },
  ],
  ['another address with the same key', true, { proof: proofOf('a') }, { proof: proofOf('a'), ip: '192.0.2.2' }],
  ['another key', false, { proof: proofOf('a') }, { proof: proofOf('b') }],
  ['a proof that is none', false, { proof: proofOf('a') }, { proof: 'none' }],
  ['another route', false, {}, { route: 'introspection' }],
])('the answer of a redemption for %s: %s', (_name, isAnswered, first, second) => {
  expect(isRepeat(first, second)).toBe(isAnswered)
})

test('what was not spent is no repeat', () => {
  const found = { payload: { clientId: 'app' }, consumedAt: null, consumedBy: null } as FoundState
  const deps = { refresh: { repeatMs: 10_000 }, machineClock: buildManualClock() }
  expect(isRefreshRepeat(deps, found, buildContext())).toBe(false)
})
