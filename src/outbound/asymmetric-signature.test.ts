import { createPublicKey, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import { systemRandom } from '../base/random.ts'
import { createSigningKeyPair, prepareSigningKey, signAsymmetric, toVerificationJwk } from './asymmetric-signature.ts'
import { buildSignatureHeaders, createSecret } from './signature.ts'

/** RFC 8032, section 7.1, test 1. */
const SEED = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60'
const PUBLIC = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
const fromSeed = { bytes: () => Buffer.from(SEED, 'hex') }

test('a key is serialised as Standard Webhooks says, and its public part is that of RFC 8032', () => {
  const { privateKey, publicKey } = createSigningKeyPair(fromSeed)
  expect(privateKey).toBe(`whsk_${Buffer.from(SEED, 'hex').toString('base64')}`)
  expect(publicKey).toBe(`whpk_${Buffer.from(PUBLIC, 'hex').toString('base64')}`)
})

test('its JWK and thumbprint are those of RFC 8037', () => {
  expect(toVerificationJwk(createSigningKeyPair(fromSeed).publicKey)).toEqual({
    kty: 'OKP',
    crv: 'Ed25519',
    x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
    kid: 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
    alg: 'EdDSA',
    use: 'sig',
  })
})

test.each([
  ['text', '{"a":"\u00e4\u{1f600}"}'],
  ['bytes', Buffer.from([0xff, 0, 0x0a])],
  ['nothing', ''],
])('node:crypto verifies a signature over %s, and no other id, time or body', (_what, body) => {
  const { privateKey, publicKey } = createSigningKeyPair(systemRandom)
  const token = signAsymmetric(prepareSigningKey(privateKey), { id: 'evt_1', timestampSeconds: 1_790_000_000, body })
  expect(token).toMatch(/^v1a,[A-Za-z0-9+/]{86}==$/)
  const key = createPublicKey({ key: { ...toVerificationJwk(publicKey) }, format: 'jwk' })
  const verifies = (head: string, signed: string | Buffer) =>
    verify(null, Buffer.concat([Buffer.from(head), Buffer.from(signed)]), key, Buffer.from(token.slice(4), 'base64'))
  expect(verifies('evt_1.1790000000.', body)).toBe(true)
  expect(verifies('evt_2.1790000000.', body)).toBe(false)
  expect(verifies('evt_1.1790000001.', body)).toBe(false)
  expect(verifies('evt_1.1790000000.', Buffer.concat([Buffer.from(body), Buffer.from(' ')]))).toBe(false)
})

test('the asymmetric signature follows the symmetric one, which stays as it was', () => {
  const message = { secret: createSecret(systemRandom), eventId: 'evt_1', timestampSeconds: 1_790_000_000, body: '{}' }
  const { 'webhook-signature': plain, ...others } = buildSignatureHeaders(message)
  const signingKey = prepareSigningKey(createSigningKeyPair(systemRandom).privateKey)
  const { 'webhook-signature': both, ...same } = buildSignatureHeaders({ ...message, signingKey })
  expect(same).toEqual(others)
  expect(plain).toMatch(/^v1,\S+$/)
  expect(both).toMatch(/^v1,\S+ v1a,\S+$/)
  expect(both?.split(' ')[0]).toBe(plain)
})
