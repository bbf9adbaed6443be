import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FEED_COLLECT_MS } from '../../src/realtime/channel/channel-feed.ts'
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
import { findViolationsInBothSchemes, NO_VIOLATIONS } from './page-browser.ts'

const VIEWER = { email: 'viewer@example.test', name: 'Vera Viewer' }
const RENAMED = { email: 'renamed@example.test', name: 'Rina Old' }

let c: ConsoleBrowser
let d: DeliveryApp
let account: string

beforeAll(async () => {
  c = await startConsoleBrowser()
  d = c.d
  await d.call('POST', '/api/v3/identity/role', { name: 'viewer', permissions: ['webhook:dashboard'] })
  await c.addUser(VIEWER, 'viewer')
  await c.addUser(RENAMED, 'viewer')
  account = (await d.call('POST', '/api/v3/identity/account', { name: 'Example' })).body.data.document_id
})
afterAll(() => c?.[Symbol.asyncDispose]())

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

const createContract = () => d.call('POST', '/api/v3/contract/contract', { account, name: 'Lease', status: 'draft' })

describe('the event catalogue', () => {
  test('says who would get an event, and why another does not until it subscribes', async () => {
    const { id } = await d.makeWebhook({
      url: `${d.receiver.origin}/quiet`,
      events: ['webhook.test'],
      account: account as never,
    })
    await d.call('PATCH', `/api/v3/webhook/webhook/${id}`, { name: 'Quiet' })
    await using opened = await c.open('/console/catalogue')
    const { page, complaints } = opened
    await waitForHeading(page, 'Event catalogue')
    await page.getByRole('button', { name: /^contract\s*\d+$/ }).click()
    await page.getByText('5 event types').waitFor()
    await page.getByLabel('Name, route or description').fill('update')
    await page.getByText('1 event type', { exact: true }).waitFor()
    await page.getByRole('table').getByRole('link', { name: 'contract.update' }).click()
    await waitForHeading(page, 'contract.update')
    await page.getByText('Has an owning account').waitFor()
    expect(JSON.parse(await page.getByTestId('envelope').innerText())).toMatchObject({
      type: 'contract.update',
      data: { resource: 'contract', action: 'update', url: expect.stringMatching('^/api/v3/contract/contract/') },
    })
    await page.getByRole('combobox', { name: 'Account' }).click()
    await page.getByRole('option', { name: 'Example' }).click()
    await page.getByText('It does not subscribe to contract.update').waitFor()
    await button(page, 'Subscribe a webhook').click()
    const dialog = page.getByRole('dialog', { name: 'Subscribe a webhook' })
    await dialog.getByLabel('Webhook').click()
    await page.getByRole('option', { name: 'Quiet' }).click()
    await dialog.getByRole('button', { name: 'Subscribe', exact: true }).click()
    await page.getByText('It subscribes to contract.update, is active').waitFor()
    await page.getByText('Gets it', { exact: true }).waitFor()
    await page.getByRole('region', { name: 'Subscribers' }).getByRole('link', { name: 'Quiet' }).waitFor()
    await takePicture(page, 'event-type-forecast')
    expect(complaints).toEqual([])
  })

  test('deprecates a type of another service, and marks it where webhooks choose theirs', async () => {
    const body = { internal: 'parcel.lose', group: 'shop', is_tenant_visible: true }
    const type = (await d.call('POST', '/api/v3/webhook/event', body)).body.data.document_id
    await using opened = await c.open(`/console/catalogue/${type}`)
    const { page, complaints } = opened
    await waitForHeading(page, 'parcel.lose')
    await page.getByText('shop', { exact: true }).waitFor()
    await page.getByLabel('What to do instead').fill('Subscribe to parcel.find.')
    await button(page, 'Deprecate').click()
    await page.getByText('deprecated', { exact: true }).waitFor()
    await expectAccessibleScreens(page, [[`catalogue/${type}`, 'Deprecation']])
    await takePicture(page, 'event-type-deprecated')
    await page.setViewportSize({ width: 1280, height: 800 })
    const { id } = await d.makeWebhook({ url: `${d.receiver.origin}/parcels` })
    await follow(page, `webhooks/${id}?tab=events`)
    await page.getByText('shop · parcel').waitFor()
    await page.getByText('Deprecated: Subscribe to parcel.find.').waitFor()
    await follow(page, `catalogue/${type}`)
    await button(page, 'End the deprecation').click()
    await page.getByText('deprecated', { exact: true }).waitFor({ state: 'detached' })
    expect(complaints).toEqual([])
  })

  test('says in German what the service declares, and anything else in its own words', async () => {
    await d.call('POST', '/api/v3/webhook/event', { internal: 'parcel.sort', description: 'Sorts a parcel' })
    await d.call('POST', '/api/v3/identity/role', { name: 'sorter', description: 'Sorts', permissions: [] })
    await using opened = await c.open('/console/catalogue')
    const { page } = opened
    await page.evaluate(() => localStorage.setItem('signalbox-console-language', 'de'))
    await page.reload()
    await page.getByLabel('Name, Route oder Beschreibung').fill('vertrag anl')
    await page.getByText('Einen Vertrag anlegen').waitFor()
    await page.getByRole('link', { name: 'contract.create' }).last().click()
    await page.getByRole('row').getByText('Einen Vertrag anlegen').waitFor()
    await follow(page, 'catalogue?q=sort')
    await page.getByText('Sorts a parcel').waitFor()
    await follow(page, 'roles')
    for (const [role, text] of Object.entries({ sorter: 'Sorts', administrator: 'Darf alles.' })) {
      await button(page, role).click()
      await page.getByRole('dialog', { name: role }).getByText(text, { exact: true }).waitFor()
      await page.keyboard.press('Escape')
    }
  })

  test('shows what a sync would write, runs it, says who did, and lays a stale row to rest', async () => {
    const { db } = d.t.database
    await db.deleteFrom('event').where('internal', '=', 'contract.delete').execute()
    await db.updateTable('event').set({ route: '/old' }).where('internal', '=', 'contract.find-one').execute()
    const made = await d.call('POST', '/api/v3/webhook/event', { internal: 'contract.sign' })
    const stale = made.body.data.document_id
    await db.updateTable('event').set({ source: 'route' }).where('document_id', '=', stale).execute()
    await using opened = await c.open('/console/overview')
    const { page, complaints } = opened
    await page.getByText('The event catalogue of the database differs from the code.').waitFor()
    await page.getByRole('link', { name: 'Catalogue status' }).click()
    await waitForHeading(page, 'Catalogue status')
    await page.getByText('Out of sync').waitFor()
    await page.getByText('+ contract.delete').waitFor()
    await page.getByText('- contract.find-one route: /old').waitFor()
    await page.getByText('by a deployment or a command').waitFor()
    await takePicture(page, 'catalogue-out-of-sync')
    await button(page, 'Run the sync').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Run the sync', exact: true }).click()
    await page.getByText('None: a sync would write nothing.').waitFor()
    await page.getByText('2 rows written').waitFor()
    await button(page, 'Deactivate').click()
    await page.getByRole('dialog').getByText('0 webhooks subscribe to it.').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Deactivate', exact: true }).click()
    await page.getByText('In sync', { exact: true }).waitFor()
    expect(complaints).toEqual([])
  })
})

describe('provisioning', () => {
  test('makes a target with its secret, shows what failed and what was sent, and redrives it', async () => {
    await using opened = await c.open('/console/provisioning')
    const { page, complaints } = opened
    await page.getByText('No platform is told of users yet.').waitFor()
    await page.getByRole('link', { name: 'New target' }).first().click()
    await page.getByLabel('URL').fill(`${d.receiver.origin}/users`)
    await page.getByLabel('Name', { exact: true }).fill('Billing platform')
    await button(page, 'Create the target').click()
    await button(page, 'Show').click()
    await expect.poll(() => page.getByTestId('secret').innerText()).toMatch(/^whsec_/)
    await page.getByLabel('I have stored it').check()
    await button(page, 'Done').click()
    await waitForHeading(page, 'Billing platform')

    d.receiver.behave({ kind: 'status', status: 422, body: 'no such tenant' })
    await d.call('POST', '/api/v3/identity/user', { email: 'new@example.test', name: 'Nora New' })
    await d.pass(0)
    await follow(page, 'provisioning/deliveries?status=failed')
    await page.getByRole('link', { name: 'user.provisioned' }).click()
    const drawer = page.getByRole('dialog')
    await drawer.getByText('422').first().waitFor()
    await drawer.getByText('"email": "new@example.test"').waitFor()
    await drawer.getByText('Identity and status are sent, never roles').waitFor()
    await takePicture(page, 'provisioned-failed')
    d.receiver.behave({ kind: 'status', status: 200 })
    await page.keyboard.press('r')
    const redriven = page.waitForResponse((answer) => new URL(answer.url()).pathname.endsWith('/replay'))
    await page.getByRole('dialog', { name: 'Redrive' }).getByRole('button', { name: 'Redrive' }).click()
    await redriven
    await d.pass(0)
    await drawer.getByText('Delivered', { exact: true }).first().waitFor()
    expect(complaints).toEqual([])
  })

  test('redrives many dead letters, and follows a job to its end', async () => {
    const targets = (await d.call('GET', '/api/v3/provisioning/target')).body.data
    d.receiver.behave({ kind: 'status', status: 503 })
    for (const name of ['Dana', 'Dora'])
      await d.call('POST', '/api/v3/identity/user', { email: `${name}@example.test`, name })
    for (let attempt = 0; attempt < 8; attempt += 1) await d.pass(3_600_000)
    d.receiver.behave({ kind: 'status', status: 200 })
    await using opened = await c.open('/console/provisioning/deliveries?status=dead_letter')
    const { page, complaints } = opened
    await waitForHeading(page, 'Dead letters')
    await button(page, 'Redrive').click()
    await page.getByRole('dialog').getByText('2 deliveries failed').waitFor()
    await takePicture(page, 'redrive')
    await button(page, 'Start the redrive').click()
    await waitForHeading(page, 'Jobs')
    await d.pass(1_000)
    await page.getByRole('row', { name: 'Redrive' }).getByText('Done', { exact: true }).waitFor()
    await page.getByRole('row', { name: 'Redrive' }).getByRole('link', { name: '2', exact: true }).click()
    await page.getByText('Delivered', { exact: true }).nth(2).waitFor()

    await follow(page, `provisioning/${targets[0].document_id}`)
    await button(page, 'Edit').click()
    await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('Billing')
    await takePicture(page, 'target-edit')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await waitForHeading(page, 'Billing')
    await button(page, 'Sync').click()
    const sync = page.getByRole('dialog', { name: 'Sync target Billing' })
    await sync.getByRole('button', { name: 'Sync', exact: true }).click()
    await waitForHeading(page, 'Jobs')
    await d.pass(1_000)
    await page.getByText('Done', { exact: true }).waitFor()
    await takePicture(page, 'jobs')

    await follow(page, 'provisioning/deliveries')
    await page.getByRole('link', { name: 'user.provisioned' }).first().click()
    await page.getByRole('dialog').getByText('Payload').waitFor()
    const first = page.url()
    await page.keyboard.press(']')
    await expect.poll(() => page.url()).not.toBe(first)
    await page.keyboard.press('[')
    await expect.poll(() => page.url()).toBe(first)
    expect(complaints).toEqual([])
  })
})

describe('the realtime inspector', () => {
  test('joins a channel, shows what comes, holds it while paused, and hands it out as NDJSON', async () => {
    await using opened = await c.open(`/console/realtime?channel=private-account-${account}`)
    const { page, complaints } = opened
    await page.getByText('Settings of clients').waitFor()
    await button(page, 'Subscribe').click()
    const card = page.getByTestId('subscription')
    await card.getByText('Subscribed').waitFor()
    await card.getByText(/Asked for the socket \d+\.\d+, answered in \d+ ms/).waitFor()
    await createContract()
    await d.pass(0)
    await button(page, 'contract.create').click()
    await page.getByRole('dialog').getByText('"resource": "contract"').waitFor()
    await page.keyboard.press('Escape')
    await takePicture(page, 'realtime-inspector')
    await card.getByLabel('Text of a test event').fill('knock knock')
    await button(page, 'Publish a test event').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Publish a test event' }).click()
    await card.getByText('Published.').waitFor()
    await button(page, 'realtime.test').click()
    await page.getByRole('dialog').getByText('knock knock').waitFor()
    await page.keyboard.press('Escape')
    await page.getByLabel('Page of your app').fill('https://app.example/orders')
    await page.getByText('https://app.example/orders?realtime_debug=1').waitFor()
    await button(page, 'Pause').click()
    await createContract()
    await d.pass(0)
    await page.getByText('Paused; 1 message waits.').waitFor()
    await button(page, 'Resume').click()
    await page.getByLabel('Filter').fill('contract.create')
    await page.getByText('2 messages', { exact: true }).waitFor()
    const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Download NDJSON').click()])
    const lines = (await readFile(await download.path(), 'utf8')).trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).event)).toEqual(['contract.create', 'contract.create'])
    await button(page, 'Clear').click()
    await page.getByText('Subscribe to a channel; what comes stands here.').waitFor()
    await page.getByRole('tab', { name: 'Published' }).click()
    await page.getByRole('link', { name: 'contract.create' }).first().waitFor()
    expect(complaints).toEqual([])
  })

  test('says who is in a presence channel, and since when', async () => {
    const config = (await d.call('GET', '/api/v3/realtime/realtime/config')).body.data
    const channel = `presence-account-${account}`
    const { promise: joined, resolve } = Promise.withResolvers<void>()
    const socket = new WebSocket(`ws://${config.ws_host}:${config.ws_port}/app/${config.key}?protocol=7`)
    socket.onmessage = async ({ data }) => {
      const message = JSON.parse(String(data))
      if (message.event === 'pusher_internal:subscription_succeeded') resolve()
      if (message.event !== 'pusher:connection_established') return
      const body = { socket_id: JSON.parse(message.data).socket_id, channel_name: channel }
      const answer = await d.call('POST', '/api/v3/realtime/realtime/presence-auth', body)
      socket.send(JSON.stringify({ event: 'pusher:subscribe', data: { channel, ...answer.body } }))
    }
    try {
      await joined
      // The server reports what happened in channels twice a second.
      await d.pass(FEED_COLLECT_MS)
      await expect
        .poll(async () => (await d.call('GET', `/api/v3/realtime/channel/${channel}/member`)).body.data[0]?.since)
        .not.toBeNull()
      await using opened = await c.open('/console/realtime?tab=channels')
      const { page, complaints } = opened
      const row = page.getByRole('row').filter({ hasText: channel })
      await row.getByRole('cell', { name: '1' }).first().waitFor()
      await row.getByRole('button', { name: 'Members' }).click()
      const panel = page.getByRole('dialog', { name: 'Members' })
      await panel.getByRole('cell', { name: /ago$/ }).waitFor()
      await takePicture(page, 'realtime-members')
      expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
      expect(complaints).toEqual([])
    } finally {
      socket.close()
    }
  })

  test('says exactly why a channel is refused', async () => {
    await using opened = await c.open('/console/realtime')
    const { page } = opened
    const field = page.getByLabel('Private channel')
    await field.fill('private-account-1')
    await page.getByText('No private channel has such a name.').waitFor()
    await field.fill('private-account-01997e2a-6c00-7000-8000-0000000000a1')
    await button(page, 'Subscribe').click()
    await page.getByTestId('subscription').getByText('Refused').waitFor()
    await page.getByTestId('subscription').getByText('permission_denied').waitFor()
    await takePicture(page, 'realtime-refused')
  })
})

describe('the frame', () => {
  test('opens screens and ids by the palette and by keys, and lists the keys', async () => {
    const { id } = await d.makeWebhook({ url: `${d.receiver.origin}/palette` })
    await d.call('PATCH', `/api/v3/webhook/webhook/${id}`, { name: 'By palette' })
    await using opened = await c.open('/console/overview')
    const { page, complaints } = opened
    await waitForHeading(page, 'Overview')
    await page.keyboard.press('Control+k')
    const field = page.getByRole('combobox', { name: 'What are you looking for?' })
    await field.fill('provisioning')
    await takePicture(page, 'palette')
    await page.keyboard.press('Enter')
    await waitForHeading(page, 'Provisioning')
    await page.keyboard.press('Control+k')
    await field.fill(id)
    await page.keyboard.press('Enter')
    await waitForHeading(page, 'By palette')
    await page.keyboard.press('g')
    await page.keyboard.press('s')
    await waitForHeading(page, 'Settings')
    await page.keyboard.press('/')
    await page.getByRole('option', { name: 'By palette' }).click()
    await waitForHeading(page, 'By palette')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('Next row').waitFor()
    await takePicture(page, 'shortcuts')
    await page.keyboard.press('Escape')
    await page.keyboard.press('g')
    await page.keyboard.press('w')
    await page.getByRole('link', { name: 'By palette' }).waitFor()
    await page.keyboard.press('j')
    await expect.poll(() => page.evaluate('document.activeElement.closest("tbody") !== null')).toBe(true)
    expect(complaints).toEqual([])
  })

  test('keeps the choices of the browser, and lets the keys be switched off', async () => {
    await using opened = await c.open('/console/settings')
    const { page, complaints } = opened
    await waitForHeading(page, 'Settings')
    await page.getByText('1 min, 5 min, 30 min, 2 hr').waitFor()
    await page.getByText('Compact', { exact: true }).click()
    await page.getByText('UTC', { exact: true }).click()
    await page.getByLabel('Single-key shortcuts').uncheck()
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.getByRole('radiogroup', { name: 'Language', exact: true }).getByText('Deutsch').click()
    await waitForHeading(page, 'Einstellungen')
    await page.reload()
    await waitForHeading(page, 'Einstellungen')
    expect(await page.evaluate('document.documentElement.dataset.density')).toBe('compact')
    await page.getByText(/UTC$/).first().waitFor()
    const stored = await page.evaluate('JSON.stringify({ ...localStorage })')
    expect(stored).not.toMatch(/eyJ|sbx_|whsec_/)
    expect(complaints).toEqual([])
  })

  test('changes the own name and asks for another own address, which can be withdrawn', async () => {
    await using opened = await c.open('/console/settings', RENAMED)
    const { page, complaints } = opened
    await waitForHeading(page, 'Settings')
    await page.getByLabel('Name', { exact: true }).fill('Rina New')
    await button(page, 'Save').click()
    await page.getByText('Rina New').first().waitFor()
    await page.getByLabel('New e-mail address').fill('rina@elsewhere.test')
    await button(page, 'Send both links').click()
    await page.getByText('Your address is about to change to rina@elsewhere.test.').waitFor()
    await button(page, 'Withdraw the change').click()
    await page.getByRole('dialog').getByText('Both links stop working').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Withdraw the change' }).click()
    await page.getByLabel('New e-mail address').waitFor()
    expect(complaints).toEqual([])
  })

  test('stops the mails about a global webhook, which has no contacts', async () => {
    const body = { url: `${d.receiver.origin}/global-mails`, is_global: true }
    const id = (await d.call('POST', '/api/v3/webhook/webhook', body)).body.data.document_id
    await using opened = await c.open(`/console/webhooks/${id}?tab=settings`)
    const { page, complaints } = opened
    const own = page.getByRole('switch', { name: 'Mails about this webhook to me' })
    await page.getByText('If a role lets you change all global webhooks.').waitFor()
    expect(await page.getByText('Administrators of the account get a mail').count()).toBe(0)
    await own.click()
    await expect.poll(() => own.isChecked()).toBe(false)
    const { db } = d.t.database
    const stored = () => db.selectFrom('webhook_mail_setting').select('stopped_webhooks').execute()
    await expect.poll(stored).toEqual([{ stopped_webhooks: [id] }])
    await db.deleteFrom('webhook_mail_setting').execute()
    expect(complaints).toEqual([])
  })

  test('chooses who gets mails about a webhook, and stops the own ones', async () => {
    const { id } = await d.makeWebhook({ url: `${d.receiver.origin}/mails`, account: account as never })
    const { user } = (await d.call('GET', '/api/v3/auth/session')).body.data
    await d.call('POST', `/api/v3/identity/account/${account}/member`, { user: user.document_id })
    await using opened = await c.open(`/console/webhooks/${id}?tab=settings`)
    const { page, complaints } = opened
    await page.getByText('Administrators of the account get a mail').waitFor()
    await page.getByRole('checkbox').first().check()
    await button(page, 'Save the members').click()
    await page.getByText('Saved').waitFor()
    const read = async () => (await d.call('GET', `/api/v3/webhook/webhook/${id}`)).body.data.contacts
    expect(await read()).toHaveLength(1)
    const own = page.getByRole('switch', { name: 'Mails about this webhook to me' })
    await own.click()
    await expect.poll(() => own.isChecked()).toBe(false)
    await expect.poll(() => own.isEnabled()).toBe(true)
    await follow(page, 'settings')
    const all = page.getByRole('switch', { name: 'Mails about webhooks' })
    await all.click()
    await expect.poll(() => all.isChecked()).toBe(false)
    await page.getByRole('radiogroup', { name: 'Language of the mails' }).getByText('Deutsch').click()
    const { db } = d.t.database
    const stored = () => db.selectFrom('webhook_mail_setting').selectAll().execute()
    await expect.poll(stored).toMatchObject([{ is_stopped: true, stopped_webhooks: [id], language: 'de' }])
    await takePicture(page, 'settings-mails')
    expect(complaints).toEqual([])
  })

  test('names the missing permission on each screen', async () => {
    await using opened = await c.open('/console/overview', VIEWER)
    const { page } = opened
    await waitForHeading(page, 'Overview')
    for (const [path, permission] of [
      ['catalogue', 'event:find-all'],
      ['catalogue/status', 'webhook:catalogue-status'],
      ['provisioning', 'provisioning-target:find-all'],
      ['provisioning/new', 'provisioning-target:create'],
      ['provisioning/deliveries', 'provisioning-delivery:find-all'],
      ['provisioning/jobs', 'provisioning-job:find-all'],
      ['realtime', 'realtime:inspect'],
    ] as const) {
      await follow(page, path)
      await page.getByText(permission, { exact: true }).waitFor()
      await page.getByText('An administrator can give you one').waitFor()
    }
    await takePicture(page, 'no-permission')
    const session = '**/api/v3/auth/session'
    await page.route(session, (route) => route.abort())
    await page.goto('/console/settings')
    await waitForHeading(page, 'No connection to the service')
    await takePicture(page, 'no-connection')
    await page.unroute(session)
    await waitForHeading(page, 'Settings')
  })
})

/** Every screen of this part, with what stands on it once it has loaded. */
const SCREENS: readonly Screen[] = [
  ['catalogue?resource=contract', 'contract.create'],
  ['catalogue/status', 'Stale rows'],
  ['realtime', 'Settings of clients'],
  ['realtime?tab=messages', 'contract.create'],
  ['realtime?tab=channels', 'Nobody has joined a private or presence channel.'],
  ['realtime?tab=events', 'Channel'],
  ['provisioning', 'Billing'],
  ['provisioning/new', 'Create the target'],
  ['provisioning/deliveries', 'user.provisioned'],
  ['provisioning/jobs', 'Done'],
  ['settings', 'POSTs of a delivery to a target'],
  ['nowhere', 'There is no such page.'],
]

describe('the screens', () => {
  test('have no accessibility fault, light and dark, and fit a phone', async () => {
    const [type] = (await d.call('GET', '/api/v3/webhook/event?filters=internal|eq|contract.create')).body.data
    const [target] = (await d.call('GET', '/api/v3/provisioning/target')).body.data
    const [delivery] = (await d.call('GET', '/api/v3/provisioning/delivery')).body.data
    await using opened = await c.open('/console/health')
    const { page, complaints } = opened
    await waitForHeading(page, 'Health')
    const screens: Screen[] = [
      ...SCREENS,
      [`catalogue/${type.document_id}?account=${account}`, 'Who would get it now'],
      [`provisioning/${target.document_id}`, 'Identity and status are sent'],
      [`provisioning/deliveries/${delivery.document_id}`, 'Payload'],
    ]
    await expectAccessibleScreens(page, screens)
    expect(complaints).toEqual([])
  })
})
