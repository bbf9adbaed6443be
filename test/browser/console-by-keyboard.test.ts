import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConsoleBrowser, startConsoleBrowser, waitForHeading } from './console-browser.ts'

/** The main path by the keyboard alone (WCAG 2.2, 2.1.1, 2.4.7 and 2.4.11): Tab, the arrows, Space, Enter and Escape. */

/** More stops than any screen of the path has. */
const MOST_STOPS = 150

let c: ConsoleBrowser

beforeAll(async () => {
  c = await startConsoleBrowser()
  // The browser has the time of the machine.
  c.d.t.clock.set(Date.now())
})
afterAll(() => c?.[Symbol.asyncDispose]())

const hasFocus = (target: Locator) =>
  target.evaluateAll((elements) => elements.some((element) => element === document.activeElement))

/** Whether what has the focus, or its label, is wholly in sight and nothing covers its middle; and whether it is marked. */
const lookAtFocus = (page: Page) =>
  page.evaluate(() => {
    const element = document.activeElement as HTMLInputElement
    const isTick = element.type === 'checkbox' || element.type === 'radio'
    const { left, right, top, bottom } = element.getBoundingClientRect()
    const shown = document.elementFromPoint((left + right) / 2, (top + bottom) / 2)
    const owner = isTick ? element.parentElement : element
    const style = getComputedStyle(element)
    return {
      isInSight: top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth,
      isCovered: !shown || !(owner?.contains(shown) || shown.contains(element)),
      isMarked: style.outlineStyle !== 'none' || style.boxShadow !== 'none' || element.matches('input, textarea'),
    }
  })

/** Tabs to a target, which then is in sight and marked. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  await target.first().waitFor()
  for (let stops = 0; !(await hasFocus(target)); stops += 1) {
    expect(stops, 'stops before the target').toBeLessThan(MOST_STOPS)
    await page.keyboard.press('Tab')
  }
  expect(await lookAtFocus(page)).toEqual({ isInSight: true, isCovered: false, isMarked: true })
}

async function press(page: Page, target: Locator, key = 'Enter'): Promise<void> {
  await tabTo(page, target)
  await page.keyboard.press(key)
}

async function type(page: Page, target: Locator, text: string): Promise<void> {
  await tabTo(page, target)
  await page.keyboard.type(text)
}

test('a webhook is made, tested, and its delivery read and replayed by the keyboard alone', async () => {
  await using opened = await c.open('/console/overview')
  const { page, complaints } = opened
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  await waitForHeading(page, 'Overview')
  await press(page, page.getByRole('link', { name: 'Webhooks', exact: true }))
  await waitForHeading(page, 'Webhooks')
  await press(page, page.getByRole('link', { name: 'New webhook' }))

  await type(page, page.getByLabel('Callback URL'), `${c.d.receiver.origin}/by-key`)
  await press(page, button('Next'))
  await tabTo(page, page.getByRole('radio'))
  while (!(await page.getByRole('radio', { name: 'Global' }).isChecked())) await page.keyboard.press('ArrowDown')
  await press(page, button('Next'))
  await type(page, page.getByLabel('Search events'), 'contract.delete')
  await press(page, page.getByLabel('contract.delete'), 'Space')
  await press(page, button('Next'))
  await press(page, button('Create the webhook'))
  await press(page, button('Show'))
  await press(page, page.getByLabel('I have stored it'), 'Space')
  await press(page, button('Done'))

  await press(page, button('Send the test'))
  await page.getByText('Success', { exact: true }).waitFor()
  expect(c.d.receiver.requests.at(-1)).toMatchObject({ path: '/by-key' })

  await press(page, page.getByRole('link', { name: 'Deliveries', exact: true }))
  await waitForHeading(page, 'Deliveries')
  await press(page, page.getByRole('table').getByRole('link', { name: 'webhook.test' }))
  const drawer = page.getByRole('dialog', { name: 'Delivery' })
  await press(page, drawer.getByRole('button', { name: 'Force replay' }))
  await press(page, page.getByLabel('The receiver may get the event twice'), 'Space')
  await press(page, button('Replay'))
  await expect.poll(() => c.d.receiver.requests.filter(({ path }) => path === '/by-key').length).toBe(2)
  await page.keyboard.press('Escape')
  await drawer.waitFor({ state: 'hidden' })
  expect(complaints).toEqual([])
})
