import { expect, test } from 'vitest'
import { newId } from '../../../test/harness/database/identity-rows.ts'
import type { UserId } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { buildUnsubscribeToken, readUnsubscribeToken } from './unsubscribe-token.ts'

const [OLD, NEW] = [
  'the old secret of at least thirty-two characters',
  'the new secret of at least thirty-two characters',
]
const old = buildKeyring([OLD], systemRandom)
const both = buildKeyring([NEW, OLD], systemRandom)
const user = newId<UserId>()

test('a token names its user as long as its key is listed', () => {
  const token = buildUnsubscribeToken(old, user)
  expect(readUnsubscribeToken(old, token)).toBe(user)
  expect(readUnsubscribeToken(both, token)).toBe(user)
  expect(readUnsubscribeToken(buildKeyring([NEW], systemRandom), token)).toBeUndefined()
  expect(readUnsubscribeToken(old, buildUnsubscribeToken(both, user))).toBeUndefined()
})

test('a token is of its user alone, and has one spelling', () => {
  const [token, other] = [buildUnsubscribeToken(old, user), buildUnsubscribeToken(old, newId<UserId>())]
  const [bytes, foreign] = [token, other].map((text) => Buffer.from(text, 'base64url')) as [Buffer, Buffer]
  const mixed = Buffer.concat([foreign.subarray(0, 16), bytes.subarray(16)])
  const shorter = bytes.subarray(0, 47)
  const longer = Buffer.concat([bytes, Buffer.from([0])])
  for (const changed of [mixed, shorter, longer, Buffer.alloc(0), Buffer.alloc(48)])
    expect(readUnsubscribeToken(old, changed.toString('base64url'))).toBeUndefined()
  for (const text of [`${token}=`, ` ${token}`, `${token}\n`, `*${token}`, bytes.toString('hex')])
    expect(readUnsubscribeToken(old, text)).toBeUndefined()
})
