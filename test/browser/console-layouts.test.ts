import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { UserId } from '../../src/base/id.ts'
import { fillSample } from '../../src/command/sample/sample.ts'
import { listConsoleRoutes, ROWS } from '../../tools/pictures/console-routes.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { type ConsoleBrowser, follow, startConsoleBrowser, waitUntilLoaded } from './console-browser.ts'
import { answerTexts, findLayoutFaults, lengthen } from './layout.ts'

// Every screen in four layouts.
vi.setConfig({ testTimeout: 900_000, hookTimeout: 600_000 })

let c: ConsoleBrowser

beforeAll(async () => {
  c = await startConsoleBrowser()
  const { t } = c.d
  await fillSample({
    ...{ db: t.database.db, keyring: t.app.keyring, now: new Date(t.clock.now()), administrator: c.operator as UserId },
    sinkUrl: `${c.origin}/api/v3/webhook/sink`,
  })
  const { body } = await c.d.call('GET', '/api/v3/identity/account?sort=created_at&page_size=1')
  const oidc = { issuer: 'https://login.finch.example', client_id: 'signalbox', client_secret: 'of the test' }
  const connection = { kind: 'oidc', name: 'Finch login', is_jit: true, oidc }
  await c.d.call('POST', `/api/v3/identity/account/${body.data[0].document_id}/connection`, connection)
})
afterAll(() => c?.[Symbol.asyncDispose]())

const readTexts = (folder: string): Record<string, string> =>
  JSON.parse(readFileSync(join(PROJECT_ROOT, 'console', 'src', folder, 'en.json'), 'utf8'))

const CONSOLE_TEXTS = readTexts('language')
const PORTAL_TEXTS = readTexts('portal/language')

/** Puts the ids of rows in the places of a route. */
async function fillPath(route: string): Promise<string> {
  let [path, id] = [route, '']
  for (const list of [ROWS[route] ?? []].flat()) {
    const { body } = await c.d.call('GET', list.replace('{id}', id))
    id = body.data[0].document_id
    path = path.replace(/\$\w+/, id)
  }
  return path
}

test('a lengthened text is 40 % longer, and keeps its places, and what is no word', () => {
  expect(lengthen('Show {{count}} rows of webhook:find-all.')).toBe('⟦Showow {{count}} rowsws off webhook:find-all.⟧')
  for (const text of Object.values(CONSOLE_TEXTS).filter((text) => /^[a-z ]{8,}$/i.test(text)))
    expect(lengthen(text).length, text).toBeGreaterThanOrEqual(text.length * 1.3)
})

test('no screen cuts a text that is 40 % longer, or scrolls sideways, at 320 and 1280 px, from left to right and from right to left', async () => {
  await using opened = await c.open('/console/health')
  const { page } = opened
  await page.route('**/console/assets/de-*.js', (route) => answerTexts(route, CONSOLE_TEXTS))
  await page.evaluate(() => localStorage.setItem('signalbox-console-language', 'de'))
  await page.reload()
  const faults: string[] = []
  for (const route of listConsoleRoutes()) {
    await follow(page, await fillPath(route))
    await page.locator('h1').first().waitFor()
    faults.push(...(await findLayoutFaults(page, route)))
  }
  expect(faults).toEqual([])
})

test('no screen of the portal does', async () => {
  await using opened = await c.open('/console/health')
  const { page } = opened
  const portal = page
  const account = await fillPath('accounts/$id')
  const made = await c.d.call('POST', `/api/v3/identity/${account.replace('accounts', 'account')}/portal-session`, {
    role: 'account-developer',
    language: 'de',
  })
  await portal.route('**/console/assets/de-*.js', async (route) => {
    const isPortal = (await (await route.fetch()).text()).length < 10_000
    await answerTexts(route, isPortal ? PORTAL_TEXTS : CONSOLE_TEXTS)
  })
  await portal.goto(made.body.data.url)
  const faults: string[] = []
  for (const screen of ['webhooks', 'new', 'deliveries', 'events', 'limits']) {
    await portal.evaluate((hash) => {
      location.hash = hash
    }, `#/${screen}`)
    await waitUntilLoaded(portal)
    await portal.locator('h1').first().waitFor()
    faults.push(...(await findLayoutFaults(portal, screen)))
  }
  expect(faults).toEqual([])
})
