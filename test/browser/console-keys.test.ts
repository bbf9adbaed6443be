import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConsoleBrowser, follow, startConsoleBrowser, waitForHeading } from './console-browser.ts'

let c: ConsoleBrowser

beforeAll(async () => {
  c = await startConsoleBrowser()
})
afterAll(() => c?.[Symbol.asyncDispose]())

test('a key that was chosen acts in the place of the default, one that is taken is refused, and the defaults come back', async () => {
  await using opened = await c.open('/console/settings')
  const { page, complaints } = opened
  await waitForHeading(page, 'Settings')
  const list = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  await page.getByRole('button', { name: 'Change the keys' }).click()
  const field = page.getByRole('textbox', { name: 'Key: List of shortcuts' })
  await field.focus()
  await page.keyboard.press('j')
  await page.getByRole('alert').getByText('j is taken: Next row').waitFor()
  expect(await field.inputValue()).toBe('?')
  await page.keyboard.press('h')
  expect(await field.inputValue()).toBe('h')
  expect(await page.getByRole('alert').count()).toBe(0)
  // A field takes what is typed: the new key opens nothing there.
  expect(await list.count()).toBe(0)
  await page.reload()
  await waitForHeading(page, 'Settings')
  await page.keyboard.press('?')
  await page.keyboard.press('h')
  await list.locator('kbd').getByText('h', { exact: true }).first().waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Restore the default keys' }).click()
  await page.keyboard.press('h')
  await page.keyboard.press('?')
  await list.locator('kbd').getByText('?', { exact: true }).waitFor()
  expect(complaints).toEqual([])
})

test('a slash in a field is typed, and elsewhere opens the search', async () => {
  await using opened = await c.open('/console/webhooks/new')
  const { page, complaints } = opened
  await waitForHeading(page, 'New webhook')
  const search = page.getByRole('combobox', { name: 'What are you looking for?' })
  const url = page.getByLabel('Callback URL')
  await url.click()
  await page.keyboard.type('https://example.com/a')
  expect(await url.inputValue()).toBe('https://example.com/a')
  expect(await search.count()).toBe(0)
  await page.getByRole('heading', { level: 1 }).click()
  await page.keyboard.press('/')
  await search.waitFor()
  expect(complaints).toEqual([])
})

test('the delivery of a test that is closed leads back to the webhook', async () => {
  const { id } = await c.d.makeWebhook()
  await using opened = await c.open(`/console/webhooks/${id}?tab=verify`)
  const { page, complaints } = opened
  const panel = page.getByRole('dialog', { name: 'Delivery' })
  await page.getByRole('button', { name: 'Send a test', exact: true }).click()
  await panel.getByText('Success', { exact: true }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('tab', { name: 'Verify', selected: true }).waitFor()
  expect(new URL(page.url()).pathname).toBe(`/console/webhooks/${id}`)
  // From the list, it leads back to the list.
  await follow(page, `deliveries?webhook=${id}`)
  await page.getByRole('link', { name: 'webhook.test' }).click()
  await panel.waitFor()
  await page.keyboard.press('Escape')
  await expect.poll(() => page.url()).toContain(`/console/deliveries?webhook=${id}`)
  expect(complaints).toEqual([])
})

test('what gets the focus by the keyboard is not behind the head of the page', async () => {
  await using opened = await c.open('/console/settings')
  const { page } = opened
  await waitForHeading(page, 'Settings')
  await page.getByRole('button', { name: 'Change the keys' }).click()
  await page.setViewportSize({ width: 1280, height: 360 })
  await page.getByRole('textbox', { name: 'Key: List of shortcuts' }).focus()
  const seen: { name: string | null; top: number }[] = []
  for (let step = 0; step < 12; step += 1) {
    await page.keyboard.press('Shift+Tab')
    const one = await page.evaluate(() => {
      const { activeElement: element } = document
      if (!element?.closest('main')) return undefined
      return { name: element.getAttribute('aria-label'), top: element.getBoundingClientRect().top }
    })
    if (one) seen.push(one)
  }
  const bottom = await page.evaluate('document.querySelector(".shell-head").getBoundingClientRect().bottom')
  expect(seen.length).toBeGreaterThan(8)
  expect(await page.evaluate('scrollY')).toBeGreaterThan(0)
  expect(seen.filter(({ top }) => top < Number(bottom))).toEqual([])
})

test('a system with few colours shows the health and the state of a list', async () => {
  await using opened = await c.open('/console/deliveries')
  const { page } = opened
  await waitForHeading(page, 'Deliveries')
  await page.locator('.dot[data-status="operational"]').waitFor()
  await page.emulateMedia({ forcedColors: 'active' })
  const invisible = await page.evaluate(() =>
    [...document.querySelectorAll('.dot[data-status="operational"], .live-dot')].filter(
      (dot) =>
        getComputedStyle(dot).backgroundColor === getComputedStyle(dot.parentElement ?? dot).backgroundColor ||
        getComputedStyle(dot).backgroundColor === 'rgb(255, 255, 255)',
    ),
  )
  expect(invisible).toEqual([])
  await page.emulateMedia({ forcedColors: 'none' })
})

test('a table that scrolls shows at which sides there is more, in both directions and with few colours', async () => {
  await using opened = await c.open('/console/roles')
  const { page } = opened
  await waitForHeading(page, 'Roles')
  await page.setViewportSize({ width: 320, height: 700 })
  const frame = page.locator('.scroll-frame').filter({ has: page.locator('.matrix') })
  const sides = () =>
    frame.evaluate((element) => ['left', 'right'].filter((side) => element.hasAttribute(`data-${side}`)).join(' '))
  const scrollTo = (place: 'start' | 'end') =>
    frame.locator('section').evaluate((region, to) => {
      const across = region.scrollWidth - region.clientWidth
      region.scrollLeft = to === 'start' ? 0 : getComputedStyle(region).direction === 'rtl' ? -across : across
    }, place)
  await expect.poll(sides).toBe('right')
  expect(await frame.evaluate((element) => getComputedStyle(element, '::after').boxShadow)).not.toBe('none')
  await scrollTo('end')
  await expect.poll(sides).toBe('left')
  await page.evaluate('document.documentElement.dir = "rtl"')
  await scrollTo('start')
  await expect.poll(sides).toBe('left')
  await scrollTo('end')
  await expect.poll(sides).toBe('right')
  await page.emulateMedia({ forcedColors: 'active' })
  expect(await frame.evaluate((element) => getComputedStyle(element, '::after').borderRightStyle)).toBe('dashed')
  await page.emulateMedia({ forcedColors: 'none' })
  await page.evaluate('document.documentElement.dir = "ltr"')
  await page.setViewportSize({ width: 1280, height: 760 })
})

test('a phone folds the filters of a list, and says how many are set', async () => {
  await using opened = await c.open('/console/users?state=active')
  const { page, complaints } = opened
  await waitForHeading(page, 'Users')
  const field = page.getByRole('combobox', { name: 'State' })
  const button = page.getByRole('button', { name: '1 filter', exact: true })
  await field.waitFor()
  expect(await button.isVisible()).toBe(false)
  await page.setViewportSize({ width: 390, height: 760 })
  await field.waitFor({ state: 'hidden' })
  await button.click()
  await field.selectOption('Disabled')
  await expect.poll(() => page.url()).toContain('state=disabled')
  await page.goto('/console/users')
  await page.getByRole('button', { name: 'Filters', exact: true, expanded: false }).waitFor()
  expect(complaints).toEqual([])
})
