import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type NervousSystem, startNervousSystem } from '../harness/process/all-roles-process.ts'
import { waitFor } from '../harness/run/wait.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'

// Whole processes: on a busy machine each start alone may take many seconds.
const stack = new AsyncDisposableStack()
let system: NervousSystem
let browser: SharedBrowser
let page: Page
let contract: string
let user: string

beforeAll(async () => {
  system = stack.use(await startNervousSystem())
  browser = await shareChromium()
  stack.defer(() => browser.close())
  const { service, pageOrigin } = system
  const member = await service.addMember()
  user = (await service.addMember()).id
  contract = await service.addContract()
  page = (await browser.lend()).page
  await page.goto(pageOrigin)
  await page.getByLabel('E-mail').fill(member.email)
  await page.getByLabel('Password').fill(member.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await waitForState('live')
})
afterAll(() => stack.disposeAsync())

const readState = async () => (await page.getByRole('status').textContent()) ?? ''
const waitForState = (wanted: string) =>
  waitFor(`the state ${wanted}`, async () => (await readState()) === wanted, {
    limitMs: 90_000,
    describe: () => wanted,
  })

const rename = (name: string) => system.service.call('PATCH', `/api/v3/contract/contract/${contract}`, { name })
const isShown = (name: string) =>
  waitFor(`${name} in the page`, async () => (await page.getByRole('list').textContent())?.includes(`${name}: `), {
    limitMs: 60_000,
  })
const isDelivered = (count: number) =>
  waitFor(`${count} deliveries`, () => new Set(system.listDeliveries()).size === count)
const setActive = (action: 'enable' | 'disable') =>
  system.service.call('POST', `/api/v3/identity/user/${user}/${action}`)
const isAtTarget = (status: string) =>
  waitFor(`${status} at the target`, async () => (await system.readTargetStatus(user)) === status)
const isRetrying = (view: string, where = 'true') =>
  waitFor(
    `a retry in ${view}`,
    async () => (await system.read(`select from ${view} where status = 'retrying' and ${where}`)).length > 0,
  )

test('an update of a contract arrives as a webhook and in a page with the hook, and a disabled user at the target', async () => {
  await rename('First')
  await setActive('disable')
  await Promise.all([isShown('First'), isDelivered(1), isAtTarget('disabled')])
})

test('provider killed: webhooks and provisioning go on, the page does not claim to be live, and what happened is published when the provider is back', async () => {
  const states: string[] = []
  await system.provider.restart(async () => {
    await waitFor('another state than live', async () => (await readState()) !== 'live')
    await rename('While the provider was away')
    await setActive('enable')
    await Promise.all([isDelivered(2), isAtTarget('active'), isRetrying('realtime_message')])
    states.push(await readState())
    expect(await page.getByRole('list').textContent()).not.toContain('While the provider was away')
  }, 'SIGKILL')
  expect(states[0]).toMatch(/^(unavailable|connecting)$/)
  await waitForState('live')
  await isShown('While the provider was away')
  await waitFor(
    'every message published',
    async () => (await system.read(`select from realtime_message where status <> 'published'`)).length === 0,
    { limitMs: 90_000 },
  )
  const [published] = await system.read(
    `select attempts from realtime_message where event = 'contract.update' order by document_id desc limit 1`,
  )
  expect(published?.attempts).toBeGreaterThan(1)
})

test('receiver killed: the page and the target go on, and the receiver gets the update when it is back', async () => {
  await system.receiver.kill()
  await rename('While the receiver was away')
  await setActive('disable')
  await Promise.all([isShown('While the receiver was away'), isAtTarget('disabled'), isRetrying('webhook_dispatch')])
  expect(new Set(system.listDeliveries()).size).toBe(2)
  await system.receiver.start()
  await system.letRetriesComeDue()
  await isDelivered(3)
  expect(await readState()).toBe('live')
})

test('target killed: the page and the receiver go on, and the target gets the state of the user when it is back', async () => {
  await system.target.kill()
  await setActive('enable')
  await rename('While the target was away')
  await Promise.all([isShown('While the target was away'), isDelivered(4), isRetrying('provisioning_delivery')])
  await system.target.start()
  await system.letRetriesComeDue()
  await isAtTarget('active')
})

test('after all of it nothing is lost: each update was delivered, published and shown, and each change of a user delivered', async () => {
  await waitFor('an empty ledger of provisioning', async () => {
    await system.letRetriesComeDue()
    return (await system.read('select from provisioning_delivery where ended_at is null')).length === 0
  })
  const updates = await system.read(
    `select e.document_id, m.status from event_occurrence e left join realtime_message m using (document_id)
     where e.event = 'contract.update' order by e.document_id`,
  )
  expect(new Set(system.listDeliveries())).toEqual(new Set(updates.map((update) => update.document_id)))
  expect(updates.map((update) => update.status)).toEqual(Array.from({ length: 4 }, () => 'published'))
  expect(await system.read(`select distinct status from provisioning_delivery`)).toEqual([{ status: 'delivered' }])
  expect(await page.getByRole('list').textContent()).toContain('While the target was away')
})
