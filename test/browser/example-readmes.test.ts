import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { type GuideShell, listBlocks, openGuideShell, startGuideService } from '../harness/process/guide-shell.ts'
import type { LocalStart } from '../harness/process/local-start.ts'
import { findFreePort } from '../harness/process/port.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'

/**
 * The READMEs of the examples from their first command to their last promise: the blocks as they stand but for the ports,
 * pasted into a shell in the checkout whose environment is empty, and the pages in a browser.
 */

const ADMIN = 'admin@signalbox.localhost'

let shell: GuideShell
let service: LocalStart
let browser: SharedBrowser
let page: Page
let password: string
/** By the port of the README. */
const ports = new Map<string, number>()

const start = () =>
  startGuideService(shell, {
    PORT: String(ports.get('3000')),
    PORTAL_FRAME_ANCESTORS: `http://127.0.0.1:${ports.get('4004')}`,
  })

beforeAll(async () => {
  for (const port of ['3000', '4001', '4002', '4003', '4004', '4711']) ports.set(port, await findFreePort())
  shell = await openGuideShell()
  service = await start()
  password = /with the password (\S+)/.exec(service.stdout())?.[1] ?? ''
  browser = await shareChromium()
  // Where an example finds the service, and its own ports, are variables that its README names.
  await shell.run(`export SIGNALBOX_URL=${here('http://localhost:3000')}`)
  await shell.run(`export APP_A_PORT=${ports.get('4001')} APP_B_PORT=${ports.get('4002')}`)
})
afterAll(async () => {
  await browser?.close()
  await service?.[Symbol.asyncDispose]()
  await shell?.[Symbol.asyncDispose]()
})
beforeEach(async () => {
  const context = await browser.newContext()
  onTestFinished(() => context.close())
  page = await context.newPage()
})

/** A text of a README with the ports of this run. */
const here = (text: string) =>
  text.replaceAll(/(?<=(?:localhost|127\.0\.0\.1):)\d+/g, (port) => String(ports.get(port)))

/**
 * Pastes what a README has after `npm start`. Its last command is the example, which keeps the terminal of the reader, and
 * the next test does not wait for it either.
 */
async function paste(example: string, ownPort?: string): Promise<string> {
  const readme = here(await readFile(join(PROJECT_ROOT, 'examples', example, 'README.md'), 'utf8'))
  const [first, second, ...more] = listBlocks(readme).filter(({ language }) => language === 'sh')
  expect([first?.text, more]).toEqual([
    expect.stringMatching(/^(?:[A-Z_]+=\S+ )?npm start +# Signalbox, in one terminal\n$/),
    [],
  ])
  const [, commands = '', last] = /^([\s\S]*?)(npm run example:\S+).*\n$/.exec(second?.text ?? '') ?? []
  expect(last).toBe(`npm run example:${example}`)
  if (ownPort !== undefined) await shell.run(`export PORT=${ports.get(ownPort)}`)
  // A variable that a README forgot ends its command.
  await shell.run(`set -u\n${commands}${last} &`)
  return readme
}

/** Opens an address that a README names. */
async function open(readme: string, address: string): Promise<void> {
  expect(readme).toContain(here(address))
  await page.goto(here(address))
}

/** Fills the sign-in form of the service. */
async function signIn(): Promise<void> {
  await page.getByLabel('E-mail address').fill(ADMIN)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

const who = () => page.locator('#who').textContent()

test('examples/oauth-client: its commands register and start the app, a user signs in, and out', async () => {
  const readme = await paste('oauth-client', '4711')
  await shell.waitForOutput(/The app is at/)
  await open(readme, 'http://127.0.0.1:4711')
  await page.getByRole('link', { name: 'Sign in' }).click()
  await signIn()
  await page.getByRole('heading', { name: 'Allow Example app?' }).waitFor()
  await page.getByRole('button', { name: 'Allow', exact: true }).click()
  await page.waitForURL(here('http://127.0.0.1:4711/'))
  expect(await who()).toMatch(new RegExp(`^Signed in as ${ADMIN}, \\d+ contracts$`))
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign out?' }).waitFor()
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await page.waitForURL(here('http://127.0.0.1:4711/'))
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByLabel('E-mail address').waitFor()
})

test('examples/oauth-device: its commands register and start the command line, and a code signs in', async () => {
  await paste('oauth-device')
  const [, address = '', code = ''] = await shell.waitForOutput(/Open (\S+) and enter (\S+)/)
  await page.goto(address)
  await page.getByRole('textbox').fill(code)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByText('The device must show this code').waitFor()
  await page.getByRole('button', { name: 'Continue' }).click()
  await signIn()
  await page.getByRole('button', { name: 'Allow', exact: true }).click()
  await page.getByRole('heading', { name: 'Device connected' }).waitFor()
  await shell.waitForOutput(new RegExp(`^Signed in as ${ADMIN}$`, 'm'))
})

test('examples/realtime: the page is live, shows a change, and says when the service is away', async () => {
  const readme = await paste('realtime', '4003')
  await shell.waitForOutput(/The page is at/)
  await open(readme, 'http://127.0.0.1:4003')
  await page.getByLabel('E-mail').fill(ADMIN)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  const state = () => page.getByRole('status').textContent()
  const contracts = () => page.getByRole('listitem').allTextContents()
  await expect.poll(state).toBe('live')
  await expect.poll(contracts).toHaveLength(1)

  const [, command = ''] = /Three commands to try:\n +(curl .*)/.exec(service.stdout()) ?? []
  await shell.run(command)
  await expect.poll(contracts).toEqual([expect.stringMatching(/^Changed by hand: /)])

  await service.stop()
  await expect.poll(state).not.toBe('live')
  service = await start()
  await shell.run(command.replace('Changed by hand', 'Changed again'))
  await expect.poll(state).toBe('live')
  await expect.poll(contracts).toEqual([expect.stringMatching(/^Changed again: /)])
})

test('examples/portal: a customer of the platform adds a webhook, and another one sees nothing of it', async () => {
  const readme = await paste('portal', '4004')
  await shell.waitForOutput(/The platform is at/)
  const signInAtPlatform = async (email: string, secret: string) => {
    expect(readme).toContain(`\`${email}\` with the password \`${secret}\``)
    await open(readme, 'http://127.0.0.1:4004')
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill(secret)
    await page.getByRole('button', { name: 'Sign in' }).click()
  }
  const portal = page.frameLocator('iframe')
  await signInAtPlatform('ada@acme.example', 'acme')
  // In a new checkout the service builds the console first.
  await portal.getByRole('link', { name: 'Add a webhook' }).click({ timeout: 180_000 })
  await portal.getByLabel('Callback URL').fill('https://hooks.acme.example/')
  await portal.getByRole('button', { name: 'Create the webhook' }).click()
  await portal.getByRole('dialog', { name: 'The secret of the webhook' }).waitFor()
  await expect.poll(() => page.locator('#happened').textContent()).toBe('webhook-created')
  await page.context().clearCookies()
  await signInAtPlatform('bob@globex.example', 'globex')
  await portal.getByText('No webhook yet').waitFor()
})

test('examples/sso: a user signs in at one app, arrives at the other, and is signed out of both', async () => {
  const readme = await paste('sso')
  await shell.waitForOutput(/App B, on another domain/)
  await open(readme, 'http://b.localhost:4002/orders')
  expect(new URL(page.url()).origin).toBe(here('http://a.localhost:4001'))
  await page.getByLabel('E-mail').fill(ADMIN)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(here('http://b.localhost:4002/orders'))
  expect(await who()).toBe(`Signed in as ${ADMIN}.`)
  await page.getByRole('button', { name: 'Sign out everywhere' }).click()
  await page.waitForURL(here('http://b.localhost:4002/'))
  await page.goto(here('http://a.localhost:4001'))
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
})
