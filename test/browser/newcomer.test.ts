import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildConsole } from '../../src/operations/console/build-console.ts'
import { findDataRoot } from '../harness/process/data-root.ts'
import { startHere } from '../harness/process/local-start.ts'
import { findKeptPort } from '../harness/process/port.ts'
import { seedDataDir } from '../harness/process/seeded-data-dir.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import { follow, takePicture, waitForHeading } from './console-browser.ts'

const stack = new AsyncDisposableStack()
let browser: SharedBrowser
/** What a terminal shows after `npm start`. */
let shown: string
/** The address of the service. */
let baseURL: string

beforeAll(async () => {
  await buildConsole()
  const parent = await mkdtemp(join(await findDataRoot(), 'signalbox newcomer '))
  stack.defer(() => rm(parent, { recursive: true, force: true }))
  const dataDir = join(parent, 'data')
  await seedDataDir(dataDir)
  const service = stack.use(
    startHere({ PORT: String(await findKeptPort()), SIGNALBOX_DATA_DIR: dataDir }, { demo: true }),
  )
  await service.waitForOutput(/Stop with Ctrl-C\./)
  shown = service.stdout()
  browser = await shareChromium()
  stack.defer(() => browser.close())
})
afterAll(() => stack.disposeAsync())

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

/** The screen that is open, by its path below `/console/`. */
const pathOf = (page: Page) => new URL(page.url()).pathname.replace('/console/', '')

/** Reads the secret that a dialog shows once, and closes the dialog. */
async function takeSecret(page: Page): Promise<string> {
  await button(page, 'Show').click()
  const secret = page.getByTestId('secret')
  await expect.poll(() => secret.innerText()).not.toMatch(/^•*$/)
  const text = await secret.innerText()
  await page.getByLabel('I have stored it').check()
  await button(page, 'Done').click()
  return text
}

async function signInAsShown(page: Page): Promise<void> {
  const [, console] = /Operator console: (\S+)/.exec(shown)!
  const [, email, password] = /Sign in as (\S+) with the password (\S+)/.exec(shown)!
  await page.goto(console!)
  await page.getByLabel('E-mail address').fill(email!)
  await page.getByLabel('Password', { exact: true }).fill(password!)
  await button(page, 'Sign in').click()
  await waitForHeading(page, 'Overview')
}

async function makeWebhookOfAnAccount(page: Page): Promise<void> {
  await follow(page, 'webhooks/new')
  await page.getByLabel('Callback URL').fill(`${baseURL}/api/v3/webhook/sink?receiver=till`)
  await page.getByLabel('Name', { exact: true }).fill('Till')
  await button(page, 'Next').click()
  await page.getByRole('radio', { name: 'Account' }).check()
  await page.getByRole('combobox', { name: 'Account' }).click()
  await page.getByRole('option', { name: 'Demo account' }).click()
  await button(page, 'Next').click()
  await page.getByLabel('webhook.update', { exact: true }).check()
  await button(page, 'Next').click()
  await button(page, 'Create the webhook').click()
}

/** The callback URL of the webhook that is open. */
async function changeUrl(page: Page, url: string): Promise<void> {
  await page.getByRole('tab', { name: 'Settings' }).click()
  await page.getByLabel('Callback URL').fill(url)
  await button(page, 'Save').click()
  await page.getByText(url, { exact: true }).first().waitFor()
}

async function registerApp(page: Page): Promise<void> {
  await follow(page, 'apps/new')
  await page.getByRole('textbox', { name: 'Name' }).fill('Partner')
  await button(page, 'Next').click()
  await page.getByRole('textbox', { name: 'Redirect URIs' }).fill('https://partner.example/back')
  await button(page, 'Next').click()
  await page.getByRole('checkbox', { name: 'refresh_token' }).waitFor()
  await button(page, 'Next').click()
  await button(page, 'Register the app').click()
  await takeSecret(page)
  await waitForHeading(page, 'Partner')
}

test('a newcomer does the whole of it in the browser alone, after npm start', async () => {
  const [, address] = /Signalbox listens on (\S+)/.exec(shown)!
  baseURL = address!
  const { page } = await browser.lend({ baseURL, viewport: { width: 1280, height: 900 } })
  await signInAsShown(page)
  await makeWebhookOfAnAccount(page)
  const secret = await takeSecret(page)
  await waitForHeading(page, 'Till')
  const till = pathOf(page)
  await button(page, 'Send a test').click()
  const drawer = page.getByRole('dialog')
  await drawer.getByText('Success').waitFor()

  const sink = `${baseURL}/api/v3/webhook/sink?receiver=till`
  await follow(page, till)
  await changeUrl(page, `${sink}&fails=true`)
  await follow(page, 'deliveries?status=retrying')
  await page.getByRole('table').getByRole('link', { name: 'webhook.update' }).first().click()
  await drawer.getByText('The receiver failed.').waitFor()
  await drawer.getByText('Attempt 2 of 5 follows').waitFor()
  await drawer.getByText('Answer of the receiver').click()
  await drawer.getByText('sink_fails').first().waitFor()
  await takePicture(page, 'newcomer-retrying')
  const delivery = pathOf(page)

  await follow(page, till)
  await changeUrl(page, sink)
  await follow(page, delivery)
  await button(page, 'Force replay').click()
  await expect.poll(() => button(page, 'Replay').isDisabled()).toBe(true)
  await page.getByLabel('The receiver may get the event twice').check()
  await button(page, 'Replay').click()
  await page.getByRole('main').getByText('Success', { exact: true }).waitFor()

  await follow(page, till)
  await button(page, 'More actions').click()
  await page.getByRole('menuitem', { name: 'Rotate the secret' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate the secret' }).click()
  expect(await takeSecret(page)).not.toBe(secret)

  await registerApp(page)

  const { page: theirs } = await browser.lend({ baseURL })
  await theirs.goto('/auth/sign-in')
  await theirs.getByRole('link', { name: 'Continue with a sample user' }).click()
  await theirs.getByRole('link', { name: 'Continue as Rita Returning' }).click()
  await theirs.getByText('Rita Returning').first().waitFor()
  await follow(page, 'users')
  await page.getByRole('link', { name: 'Rita Returning' }).first().click()
  await waitForHeading(page, 'Rita Returning')
  await button(page, 'Disable').click()
  await page
    .getByRole('dialog', { name: 'Disable user Rita Returning' })
    .getByRole('button', { name: 'Disable', exact: true })
    .click()
  await button(page, 'Enable').waitFor()
  await theirs.reload()
  await theirs.getByLabel('Password', { exact: true }).waitFor()
})
