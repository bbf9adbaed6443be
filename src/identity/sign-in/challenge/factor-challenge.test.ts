import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { SessionId, UserId } from '../../../base/id.ts'
import { systemRandom } from '../../../base/random.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import { countAttempt, type FactorChallenge, findChallenge, useChallenge } from './factor-challenge.store.ts'
import { CHALLENGE_LIFETIME_MS, createChallenge, findChallengeRefusal, hashChallenge } from './factor-challenge.ts'

const PURPOSE: FactorChallenge['purpose'] = 'sign-in'
const ADDRESS = '10.1.1.1'

const database = await openForFile(createTestDatabase())
const rows = buildIdentityRows(database.db)
const userId = await rows.user()
const sessionId = await rows.session(userId)

async function create(more: { sessionId?: SessionId; proofHash?: Buffer } = {}) {
  const text = await inTransaction(database.db, (tx) =>
    createChallenge(systemRandom, tx, { purpose: PURPOSE, userId, address: ADDRESS, now: MADE_AT, ...more }),
  )
  return { text, stored: (await findChallenge(database.db, { hash: hashChallenge(text) }))! }
}

/** Whether a request with this answers the challenge. */
const refuse = (
  challenge: FactorChallenge | undefined,
  more: Partial<Parameters<typeof findChallengeRefusal>[1]> = {},
) => findChallengeRefusal(challenge, { purpose: PURPOSE, address: ADDRESS, now: MADE_AT, ...more })

test('a challenge is random, kept by its hash, and has what it was made for', async () => {
  const [bare, full] = [await create(), await create({ sessionId, proofHash: Buffer.from('hash') })]
  expect(bare.text).toMatch(/^[\w-]{43}$/)
  expect(full.text).not.toBe(bare.text)
  expect(bare.stored).toMatchObject({
    ...{ userId, sessionId: null, proofHash: null, attempts: 0, usedAt: null },
    expiresAt: madeAfter(CHALLENGE_LIFETIME_MS),
  })
  expect(full.stored).toMatchObject({ sessionId, proofHash: Buffer.from('hash') })
})

describe('a challenge is answered', () => {
  test('by who it was made for, in its network, until it expires', async () => {
    const { stored } = await create({ sessionId })
    for (const more of [{}, { userId }, { sessionId }, { userId, sessionId }])
      expect(refuse(stored, more)).toBeUndefined()
    expect(refuse(stored, { now: madeAfter(CHALLENGE_LIFETIME_MS - 1) })).toBeUndefined()
    expect(refuse(stored, { now: madeAfter(CHALLENGE_LIFETIME_MS) })).toBe('challenge_expired')
  })

  test('by no other person, session or network, and for no other purpose', async () => {
    const { stored } = await create({ sessionId })
    expect(refuse(undefined)).toBe('challenge_unknown')
    expect(refuse(stored, { purpose: 'passkey-factor' })).toBe('challenge_unknown')
    expect(refuse(stored, { userId: newId<UserId>() })).toBe('other_person')
    expect(refuse(stored, { userId: null })).toBe('other_person')
    expect(refuse(stored, { sessionId: newId<SessionId>() })).toBe('other_person')
    expect(refuse(stored, { sessionId: null })).toBe('other_person')
    expect(refuse(stored, { address: '10.2.1.1' })).toBe('other_network')
    expect(refuse({ ...stored, addressHash: null } as unknown as FactorChallenge)).toBe('other_network')
  })

  test('five times at most, and once with success', async () => {
    const { text, stored } = await create()
    expect(refuse({ ...stored, attempts: 5 })).toBeUndefined()
    expect(refuse({ ...stored, attempts: 6 })).toBe('challenge_exhausted')
    const counted = await inTransaction(database.db, (tx) => countAttempt(tx, { hash: hashChallenge(text) }))
    expect(counted).toMatchObject({ attempts: 1, usedAt: null })
    await inTransaction(database.db, (tx) => useChallenge(tx, { hash: hashChallenge(text), now: MADE_AT }))
    const spent = await findChallenge(database.db, { hash: hashChallenge(text) })
    expect(refuse(spent)).toBe('challenge_used')
  })
})
