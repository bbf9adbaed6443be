import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findFreePort } from '../harness/process/port.ts'
import { PROJECT_ROOT, startProcess } from '../harness/process/process.ts'
import { openRealtimeService, type RealtimeService, type User } from '../harness/realtime/realtime-service.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import type { LentPage } from './lent-page.ts'

// Whole processes: on a busy machine each start alone may take many seconds.
/** Changes whose arrival is timed. */
const CHANGES = 30

const stack = new AsyncDisposableStack()
let service: RealtimeService
let browser: SharedBrowser
let origin: string

beforeAll(async () => {
  service = stack.use(await openRealtimeService({ isLocal: true }))
  const port = await findFreePort()
  origin = `http://127.0.0.1:${port}`
  const example = startProcess({
    args: [join(PROJECT_ROOT, 'examples', 'realtime', 'main.ts')],
    env: { SIGNALBOX_URL: service.first.url, PORT: String(port) },
  })
  stack.defer(async () => void (await example.kill()))
  await example.waitForOutput(/The page is at/)
  browser = await shareChromium()
  stack.defer(() => browser.close())
})
afterAll(() => stack.disposeAsync())

const stateOf = (page: Page) => page.getByRole('status').textContent()

async function openAs({ email, password }: User): Promise<LentPage> {
  const lent = await browser.lend()
  const { page } = lent
  await page.goto(origin)
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect.poll(() => stateOf(page)).toBe('live')
  return lent
}

test('a page with the hooks shows each change of a contract, and the test prints how soon it arrived', async () => {
  const { page, giveBack } = await openAs(await service.addMember())
  const contract = await service.addContract()
  const item = page.getByRole('listitem')
  await expect.poll(() => item.allTextContents()).toEqual(['A contract: draft'])
  const delays: number[] = []
  for (let n = 0; n < CHANGES; n += 1) {
    const status = n % 2 === 0 ? 'active' : 'draft'
    const shown = page.waitForFunction((text) => document.querySelector('li')?.textContent === text, `C${n}: ${status}`)
    await service.call('PATCH', `/api/v3/contract/contract/${contract}`, { name: `C${n}`, status })
    await shown
    delays.push(Number(/\d+/.exec((await page.locator('#delay').textContent()) ?? '')?.[0]))
  }
  const sorted = delays.sort((a, b) => a - b)
  const [median, longest] = [sorted[CHANGES / 2], sorted.at(-1)]
  process.stdout.write(
    `from the begin of a change to its arrival in a page: median ${median} ms, longest ${longest} ms\n`,
  )
  expect(median).toBeLessThan(5_000)
  await giveBack()
})

test('a page of a user who loses the membership says that it has no access', async () => {
  const user = await service.addMember()
  const { page, giveBack } = await openAs(user)
  await service.call('DELETE', `/api/v3/identity/account/${service.account}/member`, { user: user.id })
  await expect.poll(() => stateOf(page)).toMatch(/^No access: /)
  await giveBack()
})

test('a page says that there is no connection while the service is away, and shows what it missed when it is back', async () => {
  const { page, giveBack } = await openAs(await service.addMember())
  const contract = await service.addContract()
  await service.restart(async () => {
    await expect.poll(() => stateOf(page)).not.toBe('live')
    await service.renameUnseen(contract, 'Changed meanwhile')
  })
  await expect.poll(() => stateOf(page)).toBe('live')
  await expect.poll(() => page.getByRole('listitem').allTextContents()).toContain('Changed meanwhile: draft')
  await giveBack()
})
