import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { decideRefresh, deriveSuccessor, hashClient, REPEAT_MS } from './refresh-decision.ts'

const now = new Date('2026-09-11T12:00:00.000Z')
const ago = (ms: number) => new Date(now.getTime() - ms)
const client = hashClient({ address: '192.0.2.1', userAgent: 'A' })
const fresh = { expiresAt: ago(-1), spentAt: null, spentBy: null, isSessionLiving: true }
const spent = { ...fresh, spentAt: ago(REPEAT_MS - 1), spentBy: client }

describe('a presented refresh token', () => {
  test.each([
    ['unspent', fresh, 'rotate'],
    ['unspent at its expiry', { ...fresh, expiresAt: now }, 'expired'],
    ['unspent of an ended session', { ...fresh, isSessionLiving: false }, 'session_ended'],
    ['spent by the client 9.999 s before', spent, 'repeat'],
    ['spent by the client 10 s before', { ...spent, spentAt: ago(REPEAT_MS) }, 'reused'],
    ['spent a moment later, by a clock that is ahead', { ...spent, spentAt: ago(-1_000) }, 'repeat'],
    ['spent and expired since', { ...spent, expiresAt: ago(1) }, 'repeat'],
    ['spent by another client', { ...spent, spentBy: hashClient({ address: '192.0.2.2', userAgent: 'A' }) }, 'reused'],
    ['spent before clients were recorded', { ...spent, spentBy: null }, 'reused'],
    ['spent, of an ended session', { ...spent, isSessionLiving: false }, 'session_ended'],
  ])('%s leads to its decision', (_name, token, decision) => {
    expect(decideRefresh(token, { client, now })).toBe(decision)
  })
})

describe('a client', () => {
  test('is its address group and user agent', () => {
    const hash = (address: string | null, userAgent: string | null) =>
      hashClient({ address, userAgent }).toString('hex')
    expect(hash('2001:db8::1', 'A')).toBe(hash('2001:db8::ffff', 'A'))
    expect(hash('::ffff:192.0.2.1', 'A')).toBe(hash('192.0.2.1', 'A'))
    const all = [hash('192.0.2.1', 'A'), hash('192.0.2.1', 'B'), hash('192.0.2.1', null), hash(null, 'A')]
    expect(new Set(all).size).toBe(4)
  })
})

describe('a successor', () => {
  const key = Buffer.alloc(32, 1)
  const salt = Buffer.alloc(16, 2)

  test('is the same for the same token, salt and key, and another for each other one', () => {
    const successor = deriveSuccessor('sbr_a', salt, key)
    expect(successor).toMatch(/^sbr_[A-Za-z0-9_-]{43}$/)
    expect(deriveSuccessor('sbr_a', salt, key)).toBe(successor)
    const others = [
      deriveSuccessor('sbr_b', salt, key),
      deriveSuccessor('sbr_a', Buffer.alloc(16, 3), key),
      deriveSuccessor('sbr_a', salt, Buffer.alloc(32, 4)),
    ]
    expect(new Set([successor, ...others]).size).toBe(4)
  })

  test('cannot be derived from what the table keeps: the hash of the token is not the token', () => {
    const kept = createHash('sha256').update('sbr_a').digest('base64url')
    expect(deriveSuccessor(kept, salt, key)).not.toBe(deriveSuccessor('sbr_a', salt, key))
  })
})
