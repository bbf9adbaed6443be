import { expect } from 'vitest'
import { openBrowser } from './oauth-service.ts'
import type { Visitor } from './visitor.ts'

/** Sign-ins that a browser may have begun and not finished. */
const OPEN_SIGN_INS = 16

const listOpen = (browser: Visitor, origin: string) =>
  [...browser.cookiesOf(origin).keys()].filter((name) => name.startsWith('sign_in_'))

async function begin(browser: Visitor, origin: string): Promise<string> {
  return (await browser.visit(`${origin}/sign-in`)).headers.location ?? ''
}

/**
 * Two tabs of a browser begin to sign in at the app of an origin and end in each order, and each ends with a session of its own.
 * `walk` leads a browser through the service, and returns the address at which it goes back to the app.
 */
export async function checkTwoTabs(
  origin: string,
  walk: (browser: Visitor, url: string) => Promise<string | undefined>,
): Promise<void> {
  for (const order of [
    [0, 1],
    [1, 0],
  ]) {
    const browser = openBrowser()
    const begun = [await begin(browser, origin), await begin(browser, origin)]
    const ends: string[] = []
    for (const url of begun) ends.push((await walk(browser, url)) ?? '')
    for (const tab of order) {
      const before = browser.cookiesOf(origin).get('app')
      expect([order, tab, (await browser.visit(ends[tab] ?? '')).status]).toEqual([order, tab, 303])
      expect(browser.cookiesOf(origin).get('app')).not.toBe(before)
      expect((await browser.visit(`${origin}/`)).body).toContain('Signed in as ')
    }
    expect(listOpen(browser, origin)).toEqual([])
  }
}

/** A browser has no more than `OPEN_SIGN_INS` at an app that it has not finished: the oldest goes. */
export async function checkOpenSignIns(origin: string): Promise<void> {
  const browser = openBrowser()
  await begin(browser, origin)
  const [first] = listOpen(browser, origin)
  for (let count = 0; count < OPEN_SIGN_INS; count += 1) await begin(browser, origin)
  expect(listOpen(browser, origin)).toHaveLength(OPEN_SIGN_INS)
  expect(listOpen(browser, origin)).not.toContain(first)
}
