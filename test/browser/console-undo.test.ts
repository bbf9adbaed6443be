import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { WebhookId } from '../../src/base/id.ts'
import { type ConsoleBrowser, follow, startConsoleBrowser, takePicture, waitForHeading } from './console-browser.ts'
import { findViolationsInBothSchemes, NO_VIOLATIONS } from './page-browser.ts'

let c: ConsoleBrowser

beforeAll(async () => {
  c = await startConsoleBrowser()
})
afterAll(() => c?.[Symbol.asyncDispose]())

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const dialog = (page: Page, name: string) => page.getByRole('dialog', { name, exact: true })
const undo = (page: Page) => page.locator('.notices').getByRole('button', { name: 'Undo' })

/** A global webhook of this name with these events. */
async function makeWebhook(name: string, events = ['contract.create']): Promise<WebhookId> {
  const { id } = await c.d.makeWebhook({ url: `${c.d.receiver.origin}/${encodeURIComponent(name)}` })
  await c.d.call('PATCH', `/api/v3/webhook/webhook/${id}`, { name })
  await c.d.call('PUT', `/api/v3/webhook/webhook/${id}/events`, { events })
  return id
}

async function readEvents(webhook: WebhookId): Promise<string[]> {
  const { body } = await c.d.call('GET', `/api/v3/webhook/webhook/${webhook}/events`)
  return body.data.events.map(({ internal }: { internal: string }) => internal)
}

/** By how many pixels the heading of a screen is below the upper edge of the window. */
const placeOf = async (page: Page) => (await page.locator('h1').boundingBox())!.y

describe('what the API restores exactly', () => {
  test('is a deactivated webhook: the notice says what is lost, takes it back, and moves nothing', async () => {
    const id = await makeWebhook('Till')
    await using opened = await c.open(`/console/webhooks/${id}`)
    const { page, complaints } = opened
    await waitForHeading(page, 'Till')
    await button(page, 'Deactivate').waitFor()
    const before = await placeOf(page)
    await button(page, 'Deactivate').click()
    await page.getByText('Till is inactive: it gets no events until it is activated again.').waitFor()
    expect((await c.d.readWebhook(id)).is_actived).toBe(false)
    await undo(page).waitFor()
    expect(await placeOf(page)).toBe(before)
    expect(await findViolationsInBothSchemes(page)).toEqual(NO_VIOLATIONS)
    await takePicture(page, 'undo')
    await undo(page).click()
    await page.getByText('Undone.').waitFor()
    expect((await c.d.readWebhook(id)).is_actived).toBe(true)
    await button(page, 'Deactivate').waitFor()
    expect(await undo(page).count()).toBe(0)
    await page.locator('.notices').getByRole('button', { name: 'Close' }).click()
    expect(await page.locator('.notice').count()).toBe(0)
    // An activation counts failures from 0, one by Undo as well: where there are some, the notice says so.
    await c.d.t.database.pool.query('update webhook set consecutive_failures = 3 where document_id = $1', [id])
    await page.reload()
    const warning = page.getByText('3 deliveries failed in a row')
    await warning.waitFor()
    await button(page, 'Deactivate').click()
    await page.getByText('Undo also sets its 3 failures in a row to 0.').waitFor()
    // What is inactive fails no further.
    await warning.waitFor({ state: 'detached' })
    await undo(page).click()
    await expect.poll(async () => (await c.d.readWebhook(id)).consecutive_failures).toBe(0)
    expect(complaints).toEqual([])
  })

  test('is a replaced event set, unless another one was put in its place since', async () => {
    const id = await makeWebhook('Billing')
    await using opened = await c.open(`/console/webhooks/${id}?tab=events`)
    const { page } = opened
    const replace = async (event: string) => {
      await page.getByLabel('Search events').fill(event)
      await page.getByRole('checkbox', { name: event }).check()
      await button(page, 'Replace the events').click()
      await dialog(page, 'Replace the events of Billing').getByRole('button', { name: 'Replace the events' }).click()
      await page.getByText('The events of Billing are replaced.').waitFor()
    }
    await replace('contract.update')
    expect(await readEvents(id)).toEqual(['webhook.test', 'contract.create', 'contract.update'])
    await undo(page).click()
    await page.getByText('Undone.').waitFor()
    expect(await readEvents(id)).toEqual(['webhook.test', 'contract.create'])
    await expect.poll(() => page.getByRole('checkbox', { name: 'contract.update' }).isChecked()).toBe(false)
    await replace('contract.delete')
    await c.d.call('PUT', `/api/v3/webhook/webhook/${id}/events`, { events: ['user.update'] })
    await undo(page).click()
    await page.locator('.notice').getByText('precondition_failed').waitFor()
    expect(await readEvents(id)).toEqual(['webhook.test', 'user.update'])
  })

  test('is a deactivated target, and a saved view', async () => {
    const target = { url: `${c.d.receiver.origin}/users`, name: 'Shop' }
    const { body } = await c.d.call('POST', '/api/v3/provisioning/target', target)
    const path = `/api/v3/provisioning/target/${body.data.document_id}`
    const isActive = async () => (await c.d.call('GET', path)).body.data.is_actived
    await using opened = await c.open(`/console/provisioning/${body.data.document_id}`)
    const { page } = opened
    await button(page, 'Deactivate').click()
    await dialog(page, 'Deactivate target Shop').getByRole('button', { name: 'Deactivate' }).click()
    await page.getByText('Shop is inactive: what waits for it stays queued.').waitFor()
    expect(await isActive()).toBe(false)
    await undo(page).click()
    await page.getByText('Undone.').waitFor()
    expect(await isActive()).toBe(true)
    await follow(page, 'deliveries?status=failed')
    await button(page, 'Views').click()
    await page.getByRole('menuitem', { name: 'Save the filters as a view' }).click()
    await page.getByLabel('Name of the view').fill('Lost ones')
    await button(page, 'Save').click()
    await button(page, 'Views').click()
    await page.getByRole('menuitem', { name: 'Forget Lost ones' }).click()
    await undo(page).click()
    await page.getByText('Undone.').waitFor()
    await button(page, 'Views').click()
    await page.getByRole('menuitem', { name: 'Lost ones', exact: true }).waitFor()
  })
})

describe('what cannot be taken back is asked about', () => {
  test('a session and an invitation say what ends', async () => {
    const user = { email: 'una@example.test', name: 'Una User' }
    const id = await c.addUser(user)
    await using theirs = await c.open('/auth/devices', user)
    await theirs.page.getByRole('heading', { level: 1 }).waitFor()
    await using opened = await c.open(`/console/users/${id}?tab=sessions`)
    const { page } = opened
    await button(page, 'End').click()
    const asked = page.getByRole('dialog')
    await asked.getByText('The device is signed out at once').waitFor()
    await asked.getByRole('button', { name: 'Cancel' }).click()
    await button(page, 'End').click()
    await asked.getByRole('button', { name: 'End', exact: true }).click()
    await page.getByText('No session is open.').waitFor()
    const account = (await c.d.call('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
    await c.d.call('POST', `/api/v3/identity/account/${account}/invitation`, { email: 'guest@example.test' })
    await follow(page, `accounts/${account}?tab=invitations`)
    await button(page, 'Revoke').click()
    const invitation = dialog(page, 'Revoke the invitation of guest@example.test')
    await invitation.getByText('The link in the mail stops working.').waitFor()
    await invitation.getByRole('button', { name: 'Revoke', exact: true }).click()
    await page.getByText('Revoked').waitFor()
  })

  test('a webhook is deleted once its name is typed', async () => {
    const id = await makeWebhook('Former till')
    await using opened = await c.open(`/console/webhooks/${id}`)
    const { page } = opened
    await button(page, 'More actions').click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    const asked = dialog(page, 'Delete webhook Former till')
    expect(await asked.getByRole('button', { name: 'Delete' }).isDisabled()).toBe(true)
    await asked.getByLabel('Type Former till to confirm').fill('Former till')
    await asked.getByRole('button', { name: 'Delete' }).click()
    await waitForHeading(page, 'Webhooks')
    expect((await c.d.t.admin('GET', `/api/v3/webhook/webhook/${id}`)).status).toBe(404)
  })
})

test('a banner that comes and goes moves nothing that is read, and hides nothing that has the focus', async () => {
  await using opened = await c.open('/console/roles')
  const { page } = opened
  await waitForHeading(page, 'Roles')
  await page.getByLabel('Part of a permission').waitFor()
  const before = await placeOf(page)
  await page.context().setOffline(true)
  const banner = page.locator('.banners').getByText('This browser is offline.')
  await banner.waitFor()
  expect(await placeOf(page)).toBe(before)
  const { y, height } = (await page.locator('.banners').boundingBox())!
  expect(Math.round(y + height)).toBeLessThanOrEqual(900)
  const foot = await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue('--foot-height'))
  expect(Number.parseFloat(foot)).toBeGreaterThanOrEqual(Math.floor(height))
  await page.context().setOffline(false)
  await banner.waitFor({ state: 'detached' })
  expect(await placeOf(page)).toBe(before)
})
