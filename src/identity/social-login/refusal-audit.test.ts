import { beforeEach, describe, expect, test } from 'vitest'
import { createSocialApp, redirectUrlOf } from '../../../test/harness/app/social-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

let users = 0

const t = await openForFile(createSocialApp())
// A minute of its own: equal refusals of a minute are one entry.
beforeEach(async () => {
  t.app.clock.set(t.app.clock.now() - (t.app.clock.now() % 60_000) + 60_000)
  await t.app.database.pool.query('delete from audit_log')
})

const someone = () => {
  users += 1
  return `70${users}`
}

const seat = (user: object = {}) => t.seat('google', { sub: someone(), ...user })

/** A user declines at the provider, and its browser opens the callback with the error. */
async function decline(): Promise<number> {
  seat({ denies: true })
  const browser = t.browser()
  return (await browser.get((await t.reachCallback(browser, 'google')).url)).status
}

/** A user answers the provider when the sign-in has expired. */
async function answerLate(): Promise<number> {
  seat()
  const browser = t.browser()
  const step = await t.reachCallback(browser, 'google')
  t.app.clock.advance(10 * 60_000)
  return (await browser.get(step.url)).status
}

/** A user answers the provider when the flow was removed, and the sign-in has expired or not. */
async function answerRemoved(laterMs: number): Promise<number> {
  seat()
  const browser = t.browser()
  const step = await t.reachCallback(browser, 'google')
  await t.app.database.pool.query('delete from login_flow')
  t.app.clock.advance(laterMs)
  return (await browser.get(step.url)).status
}

/** A user opens the callback of a finished sign-in again. */
async function answerTwice(): Promise<number> {
  seat()
  const browser = t.browser()
  const step = await t.reachCallback(browser, 'google')
  await browser.get(redirectUrlOf(step), 'application/json')
  return (await browser.get(step.url)).status
}

/** Somebody else opens the callback of a sign-in. */
async function answerElsewhere(): Promise<number> {
  seat()
  const step = await t.reachCallback(t.browser(), 'google')
  return (await t.browser().get(step.url)).status
}

async function readRefusals() {
  await t.app.app.equalEntries.flush()
  const { rows } = await t.app.database.pool.query<{ count: number; detail: { reason: string; provider: string } }>(
    `select count, detail from audit_log where action = 'login.oauth-callback' order by created_at, document_id`,
  )
  return rows.map(({ count, detail }) => [detail.provider, detail.reason, count])
}

describe('a refused sign-in in the audit log', () => {
  test.each([
    ['declined', decline, 'denied: access_denied'],
    ['expired', answerLate, 'state_expired'],
    ['expired and removed', () => answerRemoved(10 * 60_000), 'state_expired'],
    ['of no known flow', () => answerRemoved(0), 'state_unknown'],
    ['used', answerTwice, 'state_replayed'],
    ['of another browser', answerElsewhere, 'foreign_browser'],
  ])('says that it was %s', async (_what, refuse, reason) => {
    expect(await refuse()).toBe(401)
    expect(await readRefusals()).toEqual([['google', reason, 1]])
  })

  test('is an entry with those of its reason, and not with others of the same minute', async () => {
    for (const refuse of [decline, answerTwice, answerElsewhere, decline, answerTwice, decline]) await refuse()
    expect(await readRefusals()).toEqual([
      ['google', 'denied: access_denied', 3],
      ['google', 'state_replayed', 2],
      ['google', 'foreign_browser', 1],
    ])
  })
})
