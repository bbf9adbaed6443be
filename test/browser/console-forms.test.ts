import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { DeliveryApp } from '../harness/app/delivery-app.ts'
import { TINY_IMAGE } from '../harness/app/tiny-image.ts'
import {
  type ConsoleBrowser,
  examine,
  follow,
  startConsoleBrowser,
  takePicture,
  waitForHeading,
} from './console-browser.ts'
import { NO_VIOLATIONS } from './page-browser.ts'

let c: ConsoleBrowser
let d: DeliveryApp

beforeAll(async () => {
  c = await startConsoleBrowser()
  d = c.d
})
afterAll(() => c?.[Symbol.asyncDispose]())

const PRIVATE = 'https://10.1.2.3/hooks'

const isFocused = (input: Locator) => input.evaluate((element) => element === document.activeElement)

/** Expects an input with the error of the API, which reads it out with the input and has the focus. */
async function expectFieldError(input: Locator, text: RegExp): Promise<void> {
  await expect.poll(() => input.getAttribute('aria-invalid')).toBe('true')
  await expect.poll(() => isFocused(input)).toBe(true)
  const described = await input.evaluate((element) =>
    (element.getAttribute('aria-describedby') ?? '')
      .split(' ')
      .map((id) => document.getElementById(id)?.textContent)
      .join(' '),
  )
  expect(described).toMatch(text)
}

test('a form in steps goes back to the field that the API refuses, says why there, and forgets it with the next edit', async () => {
  await using opened = await c.open('/console/webhooks/new')
  const { page } = opened
  const url = page.getByLabel('Callback URL')
  await url.fill(PRIVATE)
  await page.getByLabel('Name', { exact: true }).fill('Inside')
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByRole('radio', { name: 'Global' }).check()
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByLabel('contract.delete').check()
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByRole('button', { name: 'Create the webhook' }).click()
  await expectFieldError(url, /public/)
  await page.getByTestId('field-errors').getByText('Not saved').waitFor()
  expect(await page.getByText('That did not work').count()).toBe(0)
  await takePicture(page, 'form-field-error')
  await expectAccessibleNow(page)
  await url.fill(`${d.receiver.origin}/inside`)
  await expect.poll(() => url.getAttribute('aria-invalid')).not.toBe('true')
  for (const _ of [1, 2, 3]) await page.getByRole('button', { name: 'Next' }).click()
  await page.getByRole('button', { name: 'Create the webhook' }).click()
  await page.getByText('I have stored it').waitFor()
})

/** Expects no fault of the page as it stands. */
async function expectAccessibleNow(page: Page): Promise<void> {
  const invalid = await page.locator('[aria-invalid="true"]').all()
  for (const input of invalid) expect(await input.getAttribute('aria-describedby')).not.toBeNull()
}

test('forms in a page and in a dialog show errors at their fields, and other problems in a card', async () => {
  const { id } = await d.makeWebhook()
  await using opened = await c.open(`/console/webhooks/${id}?tab=settings`)
  const { page } = opened
  const url = page.getByLabel('URL', { exact: false }).first()
  await url.fill(PRIVATE)
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await expectFieldError(url, /public/)

  await follow(page, 'users')
  await page.getByRole('button', { name: 'New user' }).click()
  const dialog = page.getByRole('dialog', { name: 'New user' })
  await dialog.getByLabel(/^E-mail/).fill('new@example.test')
  await dialog.getByLabel('Password').first().fill('short')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await expectFieldError(dialog.getByLabel('Password').first(), /characters/)
  await dialog.getByLabel('Password').first().fill('correct horse battery')
  await dialog.getByLabel(/^E-mail/).fill('operator@example.test')
  await dialog.getByRole('button', { name: 'Create' }).click()
  await dialog.getByText('That did not work').waitFor()
})

test('a German page says in German what the API refuses, at the fields and in a card with the detail below', async () => {
  const { id } = await d.makeWebhook()
  await using opened = await c.open(`/console/webhooks/${id}?tab=settings`)
  const { page } = opened
  await page.evaluate(() => localStorage.setItem('signalbox-console-language', 'de'))
  await page.reload()
  const url = page.getByLabel('URL', { exact: false }).first()
  const name = page.getByLabel('Name', { exact: true })
  const save = page.getByRole('button', { name: 'Speichern', exact: true })
  await url.fill(PRIVATE)
  // The input takes no more characters than the API, until they differ.
  await name.evaluate((input) => input.removeAttribute('maxlength'))
  await name.fill('n'.repeat(101))
  await save.click()
  await expectFieldError(name, /^Höchstens 100 Zeichen\.$/)
  await name.fill('Innen')
  await save.click()
  await expectFieldError(url, /^Der Host der URL ist nicht öffentlich erreichbar\. .*\.$/)
  expect(await examine(page, 'form-field-error-german')).toEqual({ ...NO_VIOLATIONS, isTooWide: false })

  await follow(page, 'users')
  await page.getByRole('button', { name: 'Neuer Benutzer' }).click()
  const dialog = page.getByRole('dialog', { name: 'Neuer Benutzer' })
  await dialog.getByLabel(/^E-Mail/).fill('operator@example.test')
  await dialog.getByLabel('Passwort').first().fill('kurz')
  await dialog.getByRole('button', { name: 'Benutzer anlegen' }).click()
  await expectFieldError(dialog.getByLabel('Passwort').first(), /^8 bis 256 Zeichen\./)
  await dialog.getByLabel('Passwort').first().fill('correct horse battery')
  await dialog.getByRole('button', { name: 'Benutzer anlegen' }).click()
  const card = dialog.getByRole('alert')
  await card.getByText('Der jetzige Stand lässt das nicht zu.').waitFor()
  expect(await card.locator('[lang="en"]').innerText()).toMatch(/^[A-Z].*e-mail/)
  await takePicture(page, 'problem-card-german')
})

test('of two operators who edit one user the second is told, keeps what was entered, and decides', async () => {
  const user = await c.addUser({ email: 'shared@example.test', name: 'Shared' })
  await using opened = await c.open(`/console/users/${user}`)
  const { page } = opened
  const name = page.getByLabel('Name', { exact: true })
  await name.fill('Of this operator')
  const path = `/api/v3/identity/user/${user}`
  await d.call('PATCH', path, { name: 'Of the other' })
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  const conflict = page.getByTestId('conflict')
  await conflict.getByText('Of the other').waitFor()
  expect(await name.inputValue()).toBe('Of this operator')
  expect((await d.call('GET', path)).body.data.name).toBe('Of the other')
  await takePicture(page, 'user-conflict')
  await conflict.getByRole('button', { name: 'Overwrite with mine' }).click()
  await page.getByText('Saved').waitFor()
  expect((await d.call('GET', path)).body.data.name).toBe('Of this operator')

  await name.fill('Again')
  await d.call('PATCH', path, { email: 'renamed@example.test' })
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await conflict.getByText('renamed@example.test').waitFor()
  await conflict.getByRole('button', { name: 'Reload' }).click()
  await expect.poll(() => name.inputValue()).toBe('Of this operator')
  expect(await page.getByLabel(/^E-mail/).inputValue()).toBe('renamed@example.test')
})

test('what somebody else changed beside the fields of a form asks nothing, and stays', async () => {
  const { id } = await d.makeWebhook()
  await using opened = await c.open(`/console/webhooks/${id}?tab=settings`)
  const { page } = opened
  await page.getByLabel('Name', { exact: true }).fill('Named here')
  await d.call('PATCH', `/api/v3/webhook/webhook/${id}`, { headers: { 'x-key': 'abc' } })
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved').waitFor()
  expect(await d.readWebhook(id)).toMatchObject({ name: 'Named here', header_names: ['x-key'] })
})

test('an app and an account are edited by two operators likewise', async () => {
  const made = await d.call('POST', '/api/v3/oauth/client', {
    name: 'Till',
    type: 'public',
    redirect_uris: ['https://app.example.com/callback'],
  })
  const app = `/api/v3/oauth/client/${made.body.data.document_id}`
  await using opened = await c.open(`/console/apps/${made.body.data.document_id}?tab=settings`)
  const { page } = opened
  await page.getByLabel('Publisher').fill('Acme')
  await d.call('PATCH', app, { name: 'Till of Acme' })
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  const conflict = page.getByTestId('conflict')
  await conflict.getByText('Till of Acme').waitFor()
  await conflict.getByRole('button', { name: 'Overwrite with mine' }).click()
  await page.getByText('Saved').waitFor()
  expect((await d.call('GET', app)).body.data).toMatchObject({ name: 'Till of Acme', publisher: 'Acme' })

  const account = (await d.call('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
  await follow(page, `accounts/${account}`)
  await waitForHeading(page, 'Acme')
  await page.getByRole('button', { name: 'Rename' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('Acme here')
  await d.call('PATCH', `/api/v3/identity/account/${account}`, { name: 'Acme there' })
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('Acme there').waitFor()
  await takePicture(page, 'account-conflict')
  await dialog.getByRole('button', { name: 'Overwrite with mine' }).click()
  await waitForHeading(page, 'Acme here')
})

test('a change of a role that was reviewed before another one is reviewed again, over what stands now', async () => {
  const role = { name: 'clerk', permissions: ['contract:create'] }
  const { document_id: id } = (await d.call('POST', '/api/v3/identity/role', role)).body.data
  await using opened = await c.open('/console/roles')
  const { page } = opened
  await waitForHeading(page, 'Roles')
  await page.getByLabel('Part of a permission').fill('contract:')
  await page.getByLabel('clerk: contract:delete').check()
  await page.getByRole('button', { name: 'Review the changes' }).click()
  const dialog = page.getByRole('dialog', { name: 'Review the changes' })
  await dialog.getByText('+ contract:delete').waitFor()
  await d.call('PATCH', `/api/v3/identity/role/${id}`, { permissions: ['contract:create', 'contract:update'] })
  await dialog.getByRole('button', { name: 'Save the changes' }).click()
  await dialog.getByTestId('conflict').waitFor()
  expect(await dialog.getByText('− contract:update').count()).toBe(0)
  await dialog.getByRole('button', { name: 'Save the changes' }).click()
  await dialog.waitFor({ state: 'detached' })
  const { permissions } = (await d.call('GET', `/api/v3/identity/role/${id}`)).body.data
  expect(permissions.toSorted()).toEqual(['contract:create', 'contract:delete', 'contract:update'])
})

test('the own picture is chosen and removed, and a file that is none is refused with its reason', async () => {
  await using opened = await c.open('/console/settings')
  const { page } = opened
  const choose = page.locator('input[type="file"]')
  const pick = (name: string, content: Buffer) => choose.setInputFiles({ name, mimeType: 'image/png', buffer: content })
  await pick('none.png', Buffer.from('no picture'))
  await page.getByText('That did not work').waitFor()
  await pick('own.png', Buffer.from(TINY_IMAGE, 'base64'))
  const picture = page.getByRole('img', { name: 'Your picture' })
  await picture.waitFor()
  await expect.poll(() => picture.evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBe(256)
  await takePicture(page, 'own-picture')
  await page.getByRole('button', { name: 'Remove the picture' }).click()
  const asked = page.getByRole('dialog', { name: 'Remove the picture' })
  await asked.getByText('its address stops working').waitFor()
  await asked.getByRole('button', { name: 'Remove the picture' }).click()
  await page.getByRole('img', { name: 'No picture' }).waitFor()
  expect((await d.call('GET', `/api/v3/identity/user/${c.operator}`)).body.data.avatar_url).toBeNull()
})
