import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildActivityCounter } from '../../src/operations/activity/activity-counter.ts'
import { renewProcess } from '../../src/realtime/embedded/fleet/fleet.store.ts'
import type { DeliveryApp } from '../harness/app/delivery-app.ts'
import {
  type ConsoleBrowser,
  expectAccessibleScreens,
  follow,
  startConsoleBrowser,
  takePicture,
  waitForHeading,
} from './console-browser.ts'

let c: ConsoleBrowser
let d: DeliveryApp
let target: string
let waiting: string

beforeAll(async () => {
  c = await startConsoleBrowser()
  d = c.d
  const body = { url: `${d.receiver.origin}/users`, name: 'Shop' }
  target = (await d.call('POST', '/api/v3/provisioning/target', body)).body.data.document_id
  await d.call('PATCH', `/api/v3/provisioning/target/${target}/active`, { is_actived: false })
  waiting = await c.addUser({ email: 'ada@example.test', name: 'Ada Waiting' })
  await d.call('PATCH', `/api/v3/identity/user/${waiting}`, { name: 'Ada Waits' })
  await d.makeWebhook()
})
afterAll(() => c?.[Symbol.asyncDispose]())

const logger = {
  warn: ({ err }: { err: Error }) => {
    throw err
  },
}

/** The card of a chart. */
const chart = (page: Page, title: string) =>
  page.locator('.mantine-Card-root').filter({ has: page.getByRole('heading', { name: title, exact: true }) })

test('the users whose deliveries wait at a target are listed, and found by their id', async () => {
  await using opened = await c.open(`/console/provisioning/${target}`)
  const { page, complaints } = opened
  await waitForHeading(page, 'Shop')
  await page.getByRole('tab', { name: 'Waiting users' }).click()
  const row = page.getByRole('row').filter({ hasText: 'Ada Waits' })
  await row.waitFor()
  expect(new URL(page.url()).search).toContain('tab=streams')
  await row.getByRole('link', { name: '0 attempts' }).waitFor()
  await takePicture(page, 'target-streams')
  await page.getByLabel('User id').fill(waiting)
  await page.getByRole('button', { name: 'Apply' }).click()
  await expect.poll(() => new URL(page.url()).searchParams.get('user')).toBe(waiting)
  await expect.poll(() => page.getByRole('table', { name: 'Waiting users' }).getByRole('row').count()).toBe(2)
  await page.getByLabel('User id').fill('00000000-0000-7000-8000-000000000000')
  await page.getByRole('button', { name: 'Apply' }).click()
  await page.getByText('Nothing matches').waitFor()
  await page.getByText('User id: 00000000-0000-7000-8000-000000000000').waitFor()
  await page.getByRole('button', { name: 'As API call' }).last().click()
  await page.getByText(`/api/v3/provisioning/target/${target}/stream`).first().waitFor()
  expect(complaints).toEqual([])
})

test('the overview shows sign-ins and realtime messages beside the attempts, and their numbers as a table', async () => {
  await using opened = await c.open('/console/overview?range=1h')
  const { page, complaints } = opened
  await page.getByText('No realtime messages in this range.').waitFor()
  const at = new Date(d.t.clock.now())
  await d.t.database.pool.query(
    `insert into realtime_message_ended (document_id, account, event, status, attempts, results, created_at, ended_at, fence)
     select gen_random_uuid(), gen_random_uuid(), 'contract.update', status, 1, 1, $1, $1, 1
     from unnest(array['published', 'published', 'exhausted']) status`,
    [at],
  )
  d.t.clock.advance(3 * 60_000)
  await buildActivityCounter({ db: d.t.database.db, clock: d.t.clock, logger: logger as never }).count()
  await page.reload()
  await page.getByRole('paragraph').filter({ hasText: '2 published, 1 not published' }).waitFor()
  await page
    .getByRole('paragraph')
    .filter({ hasText: /[1-9]\d* succeeded, \d+ refused/ })
    .waitFor()
  await takePicture(page, 'overview-activity')
  await chart(page, 'Realtime messages').getByRole('button', { name: 'As table' }).click()
  await page.getByRole('region', { name: 'Realtime messages' }).getByRole('cell', { name: '2' }).first().waitFor()
  expect(complaints).toEqual([])
})

test('the overview shows realtime connections, and the health what waits by lane', async () => {
  await using opened = await c.open('/console/overview?range=1h')
  const { page, complaints } = opened
  await page.getByRole('heading', { name: 'Realtime connections' }).waitFor()
  const counter = buildActivityCounter({ db: d.t.database.db, clock: d.t.clock, logger: logger as never })
  for (const connections of [4, 9]) {
    d.t.clock.advance(60_000)
    const now = new Date(d.t.clock.now())
    const process = '01990000-0000-7000-8000-000000000001'
    await renewProcess(d.t.database.db, { process, connections, now, isOnBus: false, carried: 0 })
    await counter.count()
  }
  await page.reload()
  await page
    .getByText(/At most 9 at once, \d/)
    .first()
    .waitFor()
  await chart(page, 'Realtime connections').getByRole('button', { name: 'As table' }).click()
  await page.getByRole('region', { name: 'Realtime connections' }).getByRole('cell', { name: '9' }).first().waitFor()

  const { id } = await d.makeWebhook({ url: `${d.receiver.origin}/lanes` })
  d.receiver.behave({ kind: 'status', status: 503 })
  await d.call('POST', `/api/v3/webhook/webhook/${id}/test`)
  await d.emit(1)
  await d.pass(0)
  d.receiver.behave({ kind: 'status', status: 200 })
  await follow(page, 'health')
  const retries = page.getByRole('row').filter({ hasText: 'next attempt is later' })
  await retries.getByRole('cell', { name: /^[1-9]\d*$/ }).waitFor()
  await page.getByRole('row').filter({ hasText: 'Not routed' }).getByRole('cell', { name: '0' }).waitFor()
  await takePicture(page, 'health-lanes')
  expect(complaints).toEqual([])
})

test('the charts and the waiting users have no accessibility fault, light and dark, and fit a phone', async () => {
  await using opened = await c.open('/console/health')
  await waitForHeading(opened.page, 'Health')
  await expectAccessibleScreens(opened.page, [
    ['overview', 'Realtime connections'],
    ['health', 'Queue by lane'],
    [`provisioning/${target}?tab=streams`, 'Ada Waits'],
    ['deliveries?waiting=throttled', 'Waits for'],
  ])
})
