import { expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../../test/harness/app/known-password.ts'
import { buildManualClock } from '../../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { buildHashingSemaphore } from '../../password/hashing-semaphore.ts'

const LOGIN = '/api/v3/auth/login/local'
const PASSWORD = 'correct horse battery'
/** Clients that guess at once, each from a new network each time, as long as the right passwords are tried. */
const ATTACKERS = 40
const RIGHT_TRIES = 6

// The time of the semaphore stands still: how long a hash takes on a busy machine ends no wait and forgives no point.
const hashingSemaphore = buildHashingSemaphore({
  atOnce: 1,
  queueLimit: 20,
  waitMs: 5_000,
  clock: buildManualClock(),
})
const app = await openForFile(createTestApp({ env: { TRUST_PROXY: 'loopback' }, hashingSemaphore }))

test('40 clients over many /64 with wrong passwords keep no right one out', async () => {
  const email = `right-${app.app.ids.next<'user'>()}@example.com`
  await createUserWithPassword(app, { email }, PASSWORD)
  let isOver = false
  let tries = 0
  const statuses = new Map<number, number>()
  const attack = async () => {
    while (!isOver) {
      tries += 1
      // 16 networks of /48, and in each a /64 after the other.
      const address = `2001:db8:${(tries % 16) + 1}:${(tries % 60_000).toString(16)}::1`
      const body = { email: `nobody-${tries}@example.com`, password: 'wrong horse battery' }
      const { status } = await app.anonymous('POST', LOGIN, body, { 'x-forwarded-for': address })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  const attacks = Array.from({ length: ATTACKERS }, attack)
  const right = []
  try {
    for (let step = 1; step <= RIGHT_TRIES; step += 1) {
      const body = { email, password: PASSWORD }
      const { status } = await app.anonymous('POST', LOGIN, body, { 'x-forwarded-for': `10.${step}.0.1` })
      right.push(status)
    }
  } finally {
    isOver = true
    await Promise.all(attacks)
  }
  // The places were contended, or the test would show nothing.
  expect(statuses.get(503) ?? 0).toBeGreaterThan(0)
  expect(right).toEqual(Array(RIGHT_TRIES).fill(200))
})
