import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { AccountId } from '../../base/id.ts'
import { listChannels, nameChannel, parseChannel } from './channel.ts'

const ID = '01890a5d-ac96-774b-bcce-b302099a8057'
const ACCOUNT = ID as AccountId

test.each(['account', 'contract'] as const)('the channel of one %s is read as it is named', (kind) => {
  expect(parseChannel(nameChannel({ kind, id: ID }))).toEqual({ kind, id: ID })
})

test.each([
  ['an upper-case UUID', `private-account-${ID.toUpperCase()}`],
  ['an upper-case prefix', `Private-account-${ID}`],
  ['a trailing line break', `private-account-${ID}\n`],
  ['a leading line', `x\nprivate-account-${ID}`],
  ['a second line', `private-account-${ID}\nprivate-account-${ID}`],
  ['a presence channel', `presence-account-${ID}`],
  ['an encrypted channel', `private-encrypted-account-${ID}`],
  ['a cache channel', `private-cache-account-${ID}`],
  ['a public channel', `account-${ID}`],
  ['another resource', `private-user-${ID}`],
  ['no UUID', 'private-account-'],
  ['a UUID without hyphens', `private-account-${ID.replaceAll('-', '')}`],
  ['a UUID in braces', `private-account-{${ID}}`],
  ['more behind the UUID', `private-account-${ID}-x`],
  ['a sign-in in disguise', `:user::{"id":"${ID}"}`],
  ['full-width digits', `private-account-０${ID.slice(1)}`],
  ['a null byte', `private-account-${ID}\0`],
  ['the empty name', ''],
])('%s is no private channel', (_what, name) => {
  expect(parseChannel(name)).toBeUndefined()
})

test('no text that is not exactly a private channel is read as one', () => {
  const texts = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom('private-', 'account-', ID, '\n', ':', 'A') }))
  fc.assert(
    fc.property(texts, (text) => {
      const subject = parseChannel(text)
      if (subject) expect(nameChannel(subject)).toBe(text)
    }),
  )
})

test('an event is published on the channel of its account', () => {
  expect(listChannels({ account: ACCOUNT, contract: null })).toEqual([`private-account-${ID}`])
})

test('an event of a contract is also published on that of the contract', () => {
  expect(listChannels({ account: ACCOUNT, contract: ID })).toEqual([`private-account-${ID}`, `private-contract-${ID}`])
})

test('an event without an owner is not published', () => {
  expect(listChannels({ account: null, contract: ID })).toEqual([])
})
