import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AccountId, WebhookId } from '../../src/base/id.ts'
import { foldOutcomes } from '../../src/webhook/activity/outcome.store.ts'
import { EVERYTHING } from '../../src/webhook/activity/outcome-keys.ts'
import type { DeliveryApp } from '../harness/app/delivery-app.ts'
import {
  type ConsoleBrowser,
  expectAccessibleScreens,
  follow,
  type Screen,
  startConsoleBrowser,
  takePicture,
  waitForHeading,
} from './console-browser.ts'

let c: ConsoleBrowser
let d: DeliveryApp
let account: AccountId
let billing: WebhookId
let broken: WebhookId

beforeAll(async () => {
  c = await startConsoleBrowser()
  d = c.d
  // The browser has the time of the machine.
  d.t.clock.set(Date.now() - 3 * 3_600_000)
  await fillLedger()
})
afterAll(() => c?.[Symbol.asyncDispose]())

const addContract = async (name: string) =>
  (await d.call('POST', '/api/v3/contract/contract', { account, name, status: 'draft' })).body.data
    .document_id as string

/** Traffic of three hours: a webhook that answers, and one that fails in several ways until it is nearly disabled. */
async function fillLedger(): Promise<void> {
  account = (await d.call('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
  billing = (await d.makeWebhook({ url: `${d.receiver.origin}/billing`, account })).id
  await d.call('PATCH', `/api/v3/webhook/webhook/${billing}`, { name: 'Billing' })
  for (let hour = 0; hour < 3; hour += 1) {
    for (let n = 0; n <= hour * 2; n += 1) await addContract(`Lease ${hour}.${n}`)
    await d.pass(3_500_000)
  }
  d.t.clock.set(Date.now())
  broken = (await d.makeWebhook({ url: `${d.receiver.origin}/broken` })).id
  await d.call('PATCH', `/api/v3/webhook/webhook/${broken}`, { name: 'Warehouse' })
  for (const status of [500, 404, 301, 503]) {
    d.receiver.behave({ kind: 'status', status, body: 'closed for stocktaking' })
    await d.emit(4)
    await d.pass(0)
  }
  d.receiver.behave({ kind: 'status', status: 200 })
  await foldOutcomes(d.t.database.db, { limit: 1_000 })
  // Of the day before.
  await d.t.database.pool.query(
    `insert into webhook_outcome (scope, width, at, measure, count) values ($1, 'hour', date_trunc('hour', $2::timestamptz), 'exhausted', 2)`,
    [EVERYTHING, new Date(Date.now() - 30 * 3_600_000)],
  )
}

const searchOf = (page: Page) => Object.fromEntries(new URL(page.url()).searchParams)

test('a screen names the databases whose part its figures are without, as long as they are away', async () => {
  await using opened = await c.open('/console/overview')
  const { page } = opened
  await waitForHeading(page, 'Overview')
  expect(await page.getByText('These figures are not complete').count()).toBe(0)
  let isAway = true
  // Charts that are read twice a minute may begin in between.
  await page.route('**/dashboard/summary*', async (route) => {
    const answer = await route.fetch()
    await route.fulfill({
      response: answer,
      json: { ...(await answer.json()), ...(isAway && { missing_cells: ['c1'] }) },
    })
  })
  await page.getByText('The database c1 of this service does not answer.').waitFor()
  isAway = false
  await page.getByText('These figures are not complete').waitFor({ state: 'detached' })
})

test('the overview draws a range, says it as a table, and lists what needs somebody', async () => {
  await using opened = await c.open('/console/overview')
  const { page, complaints } = opened
  await waitForHeading(page, 'Overview')
  // The chart has the same words as its title, once it is drawn.
  await page.getByRole('paragraph').filter({ hasText: '9 delivered, 12 to be repeated, 4 not delivered' }).waitFor()
  await page.getByText('2 fewer exhausted than the day before').waitFor()
  await page.getByText('12 that are still retried count when they end').waitFor()
  const failures = page.getByRole('table', { name: 'Deliveries' }).getByRole('row')
  await failures.nth(1).getByRole('link', { name: 'Warehouse' }).waitFor()
  await page.locator('.recharts-bar-rectangle').first().waitFor()
  await takePicture(page, 'overview')
  await page.getByText('7 days').click()
  await expect.poll(() => searchOf(page)).toEqual({ range: '7d' })
  await page.getByRole('button', { name: 'As table' }).first().click()
  await expect.poll(() => page.getByRole('table').first().getByRole('row').count()).toBe(29)
  await page.getByText('receiver failed').waitFor()
  await page.getByRole('link', { name: 'Warehouse' }).first().waitFor()
  await page.getByRole('button', { name: 'Replay the failed deliveries of Warehouse' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Deliveries of Warehouse that ended without success.').waitFor()
  await dialog.getByText('4 would be replayed, 0 skipped.').waitFor()
  expect(complaints).toEqual([])
})

test('the list of accounts shows what each holds and what became of its deliveries', async () => {
  await using opened = await c.open('/console/accounts')
  const { page, complaints } = opened
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'Acme', exact: true }) })
  await row.getByRole('cell', { name: '9', exact: true }).waitFor()
  expect((await row.getByRole('cell').allInnerTexts()).slice(1, 4)).toEqual(['0', '1', '9'])
  await takePicture(page, 'accounts')
  expect(complaints).toEqual([])
})

test('the attempts of a webhook are told apart by answer and by event type, for a range', async () => {
  await using opened = await c.open(`/console/webhooks/${broken}`)
  const { page, complaints } = opened
  await page.getByText('16 attempts, 16 not delivered').waitFor()
  await page.getByRole('progressbar', { name: 'receiver failed' }).waitFor()
  await page.getByText('16 · 16 failed').waitFor()
  await takePicture(page, 'webhook-breakdown')
  await page.getByText('1 hour').click()
  await expect.poll(() => searchOf(page)).toEqual({ range: '1h' })
  await page.getByText('16 attempts, 16 not delivered').waitFor()
  await page.getByRole('link', { name: 'contract.create', exact: true }).first().click()
  await waitForHeading(page, 'Event catalogue')
  expect(searchOf(page)).toEqual({ q: 'contract.create' })
  expect(complaints).toEqual([])
})

test('webhooks show their last day, and several are changed and exported at once', async () => {
  await using opened = await c.open('/console/webhooks')
  const { page, complaints } = opened
  await page.getByRole('img', { name: '9 delivered, 0 failed attempts in 24 hours' }).waitFor()
  await page.getByRole('img', { name: '0 delivered, 16 failed attempts in 24 hours' }).waitFor()
  await takePicture(page, 'webhooks')
  await page.getByRole('combobox', { name: 'Account' }).click()
  await page.getByRole('option', { name: 'Acme' }).click()
  await page.getByText('Warehouse').waitFor({ state: 'detached' })
  expect(searchOf(page)).toEqual({ account })
  await page.getByRole('table').getByRole('link', { name: 'Acme' }).first().waitFor()
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await page.getByText('Warehouse').waitFor()
  const subscribes = page.getByRole('combobox', { name: 'Subscribes to' })
  await subscribes.click()
  await subscribes.fill('contract.d')
  await page.getByRole('option', { name: 'contract.delete' }).click()
  await page.getByText('Nothing matches the filters.').waitFor()
  const named = page.getByRole('list', { name: 'Active filters' })
  await expect.poll(() => named.innerText()).toBe('Subscribes to: contract.delete')
  await takePicture(page, 'webhooks-no-match')
  await page.getByRole('button', { name: 'Clear filters' }).first().click()
  await page.getByText('Warehouse').waitFor()
  await page.getByLabel('Select Billing').check()
  await page.getByText('1 webhook selected').waitFor()
  const saved = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Export as CSV' }).last().click()
  expect((await saved).suggestedFilename()).toBe('webhooks.csv')
  await page.getByRole('button', { name: 'Deactivate' }).click()
  await page.getByText('Inactive', { exact: true }).nth(1).waitFor()
  expect((await d.readWebhook(billing)).is_actived).toBe(false)
  await page.getByText('1 webhook is inactive: it gets no events').waitFor()
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('Undone.').waitFor()
  expect((await d.readWebhook(billing)).is_actived).toBe(true)
  await page.getByRole('button', { name: 'Actions of Billing' }).click()
  await page.getByRole('menuitem', { name: 'Deactivate' }).click()
  await expect.poll(async () => (await d.readWebhook(billing)).is_actived).toBe(false)
  await page.getByText('Billing is inactive').waitFor()
  await page.getByRole('button', { name: 'Actions of Billing' }).click()
  await page.getByRole('menuitem', { name: 'Activate' }).click()
  await expect.poll(async () => (await d.readWebhook(billing)).is_actived).toBe(true)
  expect(complaints).toEqual([])
})

test('a click on a row opens it, save on what answers itself, at the end of a selection, and in a row without a screen', async () => {
  await using opened = await c.open('/console/deliveries')
  const { page, complaints } = opened
  const row = page.getByRole('row').filter({ has: page.getByRole('checkbox') })
  const answer = (n: number) => row.nth(n).getByRole('cell', { name: /^(200|301|404|500|503)$/ })
  await answer(0).click()
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await expect.poll(() => new URL(page.url()).pathname).toBe('/console/deliveries')
  await row.nth(1).getByRole('checkbox').click()
  await page.getByText('1 selected').waitFor()
  await answer(1).evaluate((cell) => getSelection()?.selectAllChildren(cell))
  await answer(1).dispatchEvent('click')
  expect(new URL(page.url()).pathname).toBe('/console/deliveries')
  await page.evaluate(() => getSelection()?.removeAllRanges())
  // With Ctrl the link gets the key, so that the browser opens a tab.
  await page.evaluate(() => {
    const keep = (event: MouseEvent) => {
      if (event.isTrusted || !(event.target instanceof HTMLAnchorElement)) return
      event.preventDefault()
      document.body.dataset.passed = `${event.ctrlKey} ${event.target.pathname}`
    }
    document.addEventListener('click', keep, { capture: true })
  })
  await answer(1).click({ modifiers: ['Control'] })
  const passed = () => page.evaluate(() => document.body.dataset.passed)
  await expect.poll(passed).toMatch(/^true \/console\/deliveries\/[0-9a-f-]{36}$/)
  expect(new URL(page.url()).pathname).toBe('/console/deliveries')

  await page.goto('/console/webhooks')
  const named = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'Billing' }) })
  await named.getByRole('button', { name: 'Actions of Billing' }).click()
  await page
    .getByRole('menuitem', { name: 'Activate' })
    .or(page.getByRole('menuitem', { name: 'Deactivate' }))
    .waitFor()
  await page.keyboard.press('Escape')
  expect(new URL(page.url()).pathname).toBe('/console/webhooks')
  await named.getByText('Active', { exact: true }).click()
  await waitForHeading(page, 'Billing')

  await follow(page, 'audit')
  await page.getByRole('row').nth(1).getByText('Success').click()
  await page.getByRole('dialog').waitFor()

  // A session has no screen of its own: its row is not lit under the pointer, and leads nowhere.
  await follow(page, 'sessions')
  const session = page.getByRole('row').nth(1)
  await session.getByRole('cell').nth(2).click()
  expect(new URL(page.url()).pathname).toBe('/console/sessions')
  expect(await session.evaluate((row) => getComputedStyle(row).cursor)).not.toBe('pointer')
  expect(complaints).toEqual([])
})

describe('the ledger', () => {
  test('keeps its filters in the URL and as a view, follows, and leads from one delivery to the next', async () => {
    await using opened = await c.open('/console/deliveries')
    const { page, complaints } = opened
    await page.getByText('Live', { exact: true }).waitFor()
    await page.locator('main tbody a').first().waitFor()
    await takePicture(page, 'ledger')
    const loaded = Number.parseInt(await page.getByText('deliveries loaded').innerText(), 10)
    await addContract('Lease of now')
    await d.pass(0)
    await page.getByText(`${loaded + 2} deliveries loaded`).waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByText('Paused').waitFor()

    await page.getByText('Retrying', { exact: true }).first().click()
    await page.getByLabel('Answer').selectOption('5xx')
    await expect.poll(() => searchOf(page)).toEqual({ status: 'retrying', code: '5xx' })
    await page.getByText('8 deliveries loaded').waitFor()
    await page.getByRole('button', { name: 'Views' }).click()
    await page.getByRole('menuitem', { name: 'Save the filters' }).click()
    await page.getByLabel('Name of the view').fill('Receiver down')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await expect.poll(() => searchOf(page)).toEqual({})
    await page.getByRole('button', { name: 'Views' }).click()
    await page.getByRole('menuitem', { name: 'Receiver down', exact: true }).click()
    await expect.poll(() => searchOf(page)).toEqual({ status: 'retrying', code: '5xx' })

    await page.getByText('8 deliveries loaded').waitFor()
    await page.getByRole('row').getByRole('link', { name: 'contract.create' }).first().click()
    const drawer = page.getByRole('dialog')
    await drawer.getByText('The receiver failed.').waitFor()
    await takePicture(page, 'delivery')
    const first = new URL(page.url()).pathname
    await drawer.getByRole('link', { name: 'Open as a page' }).waitFor()
    await drawer.getByRole('button', { name: 'Next', exact: true }).click()
    await expect.poll(() => new URL(page.url()).pathname).not.toBe(first)
    await drawer.getByText('The receiver failed.').waitFor()
    await drawer.getByRole('button', { name: 'Previous' }).click()
    await expect.poll(() => new URL(page.url()).pathname).toBe(first)
    await drawer.getByRole('button', { name: 'Show the request' }).click()
    await expect
      .poll(() => drawer.getByTestId('request').innerText())
      .toMatch(/^POST \/broken\n.*x-service-delivery: [0-9a-f-]{36}\n.*"type": "contract.create"/s)
    await drawer.getByRole('button', { name: 'Copy as cURL' }).waitFor()
    await takePicture(page, 'delivery-request')
    expect(complaints).toEqual([])
  })

  test('follows the time zone, leaves columns out, is saved as a file, and blocks changes while offline', async () => {
    await using opened = await c.open('/console/deliveries?status=retrying&code=5xx')
    const { page, complaints } = opened
    await page.getByText('8 deliveries loaded').waitFor()
    await page.getByText('UTC', { exact: true }).click()
    const shown = page.locator('tbody time').first()
    const at = new Date(String(await shown.getAttribute('datetime')))
    const wanted = at.toLocaleTimeString('en', { timeStyle: 'medium', timeZone: 'UTC' })
    await expect.poll(() => shown.innerText()).toBe(wanted)
    await page.getByRole('columnheader', { name: 'Duration' }).waitFor()
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByLabel('Duration').uncheck()
    await page.getByLabel('Compact rows').check()
    await page.getByRole('columnheader', { name: 'Duration' }).waitFor({ state: 'detached' })
    await takePicture(page, 'ledger-columns')
    await page.keyboard.press('Escape')
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export', exact: true }).click()
    await page.getByRole('menuitem', { name: 'CSV' }).click()
    const lines = (await readFile(await (await saved).path(), 'utf8')).trimEnd().split('\r\n')
    expect(lines[0]).toMatch(/^document_id,webhook,event_id,event,/)
    expect(lines).toHaveLength(9)

    await page.getByRole('row').getByRole('link', { name: 'contract.create' }).first().click()
    const drawer = page.getByRole('dialog', { name: 'Delivery' })
    await drawer.getByRole('button', { name: 'Force replay' }).click()
    await page.context().setOffline(true)
    const dialog = page.getByRole('dialog', { name: 'Replay the delivery' })
    await dialog.getByText('This browser is offline.').waitFor()
    expect(await dialog.getByRole('button', { name: 'Replay', exact: true }).isDisabled()).toBe(true)
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await page.getByTestId('updated').getByText('Offline. Updated').waitFor()
    expect(complaints.filter((complaint) => !complaint.includes('ERR_INTERNET_DISCONNECTED'))).toEqual([])
  })

  test('replays what is selected, with the count first', async () => {
    await using opened = await c.open('/console/deliveries?status=retrying')
    const { page, complaints } = opened
    await page
      .getByRole('checkbox', { name: /^Select contract.create/ })
      .first()
      .check()
    await page
      .getByRole('checkbox', { name: /^Select contract.create/ })
      .nth(1)
      .check()
    await page.getByRole('button', { name: 'Replay selected' }).click()
    const dialog = page.getByRole('dialog', { name: 'Replay deliveries' })
    await dialog.getByLabel('The receiver may get the event twice').check()
    await dialog.getByText('2 deliveries', { exact: true }).waitFor()
    await dialog.getByText('2 would be replayed, 0 skipped. 0 succeeded already.').waitFor()
    await dialog.getByRole('row').filter({ hasText: 'Warehouse' }).getByText('2', { exact: true }).waitFor()
    await takePicture(page, 'bulk-replay')
    await dialog.getByRole('button', { name: 'Start the replay' }).click()
    await dialog.getByText('of 2 done').waitFor()
    await dialog.getByRole('button', { name: 'Cancel the job' }).click()
    await dialog.getByText('What the job has not replayed yet stays as it is.').waitFor()
    await dialog.getByRole('button', { name: 'Keep the job' }).click()
    await dialog.getByRole('button', { name: 'Cancel the job' }).click()
    await dialog.getByRole('button', { name: 'Cancel the job' }).click()
    await dialog.getByText('Cancelled.').waitFor()
    expect(complaints).toEqual([])
  })

  test('of hundreds draws the lines in sight alone, to its end', async () => {
    const { pool } = d.t.database
    await pool.query(
      `insert into webhook_dispatch_ended
         (document_id, webhook, event_id, event, status, attempts, ended_at, created_at, updated_at)
       select gen_random_uuid(), $1, gen_random_uuid(), 'invoice.paid', 'success', 1, at, at, at
       from (select $2::timestamptz - n * interval '1 minute' as at from generate_series(1, 300) n) x`,
      [broken, new Date(d.t.clock.now() - 86_400_000)],
    )
    await using opened = await c.open('/console/deliveries?event=invoice.paid')
    const { page, complaints } = opened
    await page.getByText('100 deliveries loaded').waitFor()
    const scroll = async () => {
      await page.evaluate(() => window.scrollTo({ top: document.documentElement.scrollHeight }))
      return page.getByText('deliveries loaded').innerText()
    }
    await expect.poll(scroll).toBe('300 deliveries loaded')
    expect(await page.getByRole('row').count()).toBeLessThan(90)
    expect(complaints).toEqual([])
  })
})

test('an event tells its story, and a webhook its own', async () => {
  const contract = await addContract('Storied')
  await d.pass(0)
  await using opened = await c.open(`/console/events?resource_id=${contract}`)
  const { page, complaints } = opened
  await page.getByRole('link', { name: 'contract.create' }).click()
  await page.getByText('contract.create recorded').waitFor()
  await page.getByText(/^contract.create by/).waitFor()
  await page.getByText(/^Billing: attempt 1/).waitFor()
  await takePicture(page, 'story')
  await page.getByRole('link', { name: 'Its deliveries' }).click()
  await expect.poll(() => searchOf(page)).toEqual({ resource: contract })
  await page.getByText('2 deliveries loaded').waitFor()
  await follow(page, `webhooks/${broken}`)
  for (const [tab, text] of [
    ['Overview', 'Latest deliveries'],
    ['Events', 'Replace the events'],
    ['Verify', 'createHmac'],
    ['Settings', 'Danger zone'],
    ['History', 'webhook.update'],
  ] as const) {
    await page.getByRole('tab', { name: tab }).click()
    await page.getByText(text).first().waitFor()
    await takePicture(page, `webhook-${tab.toLowerCase()}`)
  }
  expect(complaints).toEqual([])
})

test('edits of a webhook say what they change, and what somebody else changed meanwhile', async () => {
  await using opened = await c.open(`/console/webhooks/${billing}?tab=events`)
  const { page, complaints } = opened
  await page.getByLabel('contract.update').check()
  await page.getByLabel('contract.create').uncheck()
  await page.getByRole('button', { name: 'Replace the events' }).click()
  const dialog = page.getByRole('dialog', { name: 'Replace the events of Billing' })
  await dialog.getByText('+ contract.update').waitFor()
  await dialog.getByText('− contract.create').waitFor()
  await takePicture(page, 'webhook-events-diff')
  await d.call('PUT', `/api/v3/webhook/webhook/${billing}/events`, { events: ['contract.create', 'contract.delete'] })
  await dialog.getByRole('button', { name: 'Replace the events' }).click()
  const conflict = page.getByTestId('conflict')
  await conflict.getByText('+ contract.delete').waitFor()
  await takePicture(page, 'webhook-events-conflict')
  await conflict.getByRole('button', { name: 'Overwrite with mine' }).click()
  await page.getByRole('button', { name: 'Replace the events' }).click()
  await dialog.getByText('− contract.delete').waitFor()
  await dialog.getByRole('button', { name: 'Replace the events' }).click()
  await dialog.waitFor({ state: 'detached' })
  const { data } = (await d.call('GET', `/api/v3/webhook/webhook/${billing}/events`)).body
  expect(data.events.map(({ internal }: { internal: string }) => internal).sort()).toEqual([
    'contract.update',
    'webhook.test',
  ])

  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await page.getByLabel('Name', { exact: true }).fill('Billing of Acme')
  await d.call('PATCH', `/api/v3/webhook/webhook/${billing}`, { name: 'Invoices', description: 'By finance' })
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await conflict.getByText('Invoices').waitFor()
  await takePicture(page, 'webhook-conflict')
  await conflict.getByRole('button', { name: 'Overwrite with mine' }).click()
  await page.getByText('Saved').waitFor()
  expect(await d.readWebhook(billing)).toMatchObject({ name: 'Billing of Acme', description: 'By finance' })
  await page.getByLabel('Resources').fill('S-1042')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await expect.poll(async () => (await d.readWebhook(billing)).resource_ids).toEqual(['S-1042'])
  await page.getByLabel('Deliveries a second').fill('7')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('At most 7 a second').waitFor()
  const headers = page.getByTestId('own-headers')
  await headers.getByRole('button', { name: 'Replace the headers' }).click()
  await headers.getByLabel('Name of header 1').fill('Host')
  await headers.getByLabel('Value of header 1').fill('example.com')
  await headers.getByRole('button', { name: 'Save' }).click()
  await headers.getByText('has a meaning to HTTP').first().waitFor()
  await headers.getByLabel('Name of header 1').fill('X-Api-Key')
  await headers.getByRole('button', { name: 'Save' }).click()
  await headers.getByText('x-api-key', { exact: true }).waitFor()
  await d.call('PATCH', `/api/v3/webhook/webhook/${billing}`, {
    name: 'Billing',
    resource_ids: null,
    max_per_second: null,
    headers: {},
  })
  // The browser reports the answers that refuse a header, and a change of what somebody else changed.
  expect(complaints.filter((text) => !/412|422/.test(text))).toEqual([])
})

test('the steps, the story and the charts have no accessibility fault, light and dark, and fit a phone', async () => {
  await using opened = await c.open('/console/health')
  const { page, complaints } = opened
  await waitForHeading(page, 'Health')
  await page.getByRole('img', { name: /^\d+ delivered, \d+ failed attempts in the last hour$/ }).waitFor()
  await page
    .getByRole('img', { name: /^Waiting work since this screen was opened, at most \d+$/ })
    .first()
    .waitFor()
  await takePicture(page, 'health')
  await page.getByRole('button', { name: 'Failing webhooks' }).click()
  await page.getByRole('dialog').getByText('A webhook has 10 or 15 failed deliveries in a row').waitFor()
  await page.keyboard.press('Escape')
  const events = (await d.call('GET', '/api/v3/webhook/event-occurrence?filters=event|eq|contract.create')).body.data
  const screens: Screen[] = [
    ['overview', 'Needs attention'],
    ['webhooks', 'Warehouse'],
    [`deliveries?status=retrying&webhook=${broken}`, 'deliveries loaded'],
    [`events/${events[0].document_id}`, 'What happened'],
  ]
  await expectAccessibleScreens(page, screens)
  expect(complaints).toEqual([])
})
