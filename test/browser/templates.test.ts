import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { TEMPLATES } from '../../packages/create/src/templates.ts'
import { buildConsole } from '../../src/operations/console/build-console.ts'
import { walk } from '../harness/browser/oauth-service.ts'
import { checkOpenSignIns, checkTwoTabs } from '../harness/browser/two-tabs.ts'
import { startHere } from '../harness/process/local-start.ts'
import { findFreePort } from '../harness/process/port.ts'
import { startProcess, type TestProcess } from '../harness/process/process.ts'
import { seedDataDir } from '../harness/process/seeded-data-dir.ts'
import { openTemplateGround, type TemplateGround, type TemplateProject } from '../harness/release/template-project.ts'
import { type SharedBrowser, shareChromium } from './chromium.ts'

/** Projects of `@signalbox/create` as their READMEs use them, beside a service as `signalbox start` starts it. */

const RECEIVERS = Object.keys(TEMPLATES).filter((name) => name.startsWith('receiver-'))

const stack = new AsyncDisposableStack()
const ports = new Map<string, number>()
/** The port of the platform of the portal, whose origin the service allows to frame it. */
let platformPort: number
let ground: TemplateGround
/** By the name of its template. */
const projects = new Map<string, TemplateProject>()
let browser: SharedBrowser
let url: string
let token: string
/** What the service has printed. */
let printed: () => string
let administrator: { email: string; password: string }

beforeAll(async () => {
  ground = stack.use(await openTemplateGround())
  for (const name of Object.keys(TEMPLATES)) projects.set(name, await ground.make(name))
  for (const name of RECEIVERS) ports.set(name, await findFreePort())
  const dataDir = join(ground.folder, 'data')
  await seedDataDir(dataDir)
  const targets = [...ports.values()].map((port) => `127.0.0.1:${port}`).join(',')
  platformPort = await findFreePort()
  const env = {
    PORT: '0',
    SIGNALBOX_DATA_DIR: dataDir,
    WEBHOOK_ALLOWED_PRIVATE_TARGETS: targets,
    PORTAL_FRAME_ANCESTORS: `http://127.0.0.1:${platformPort}`,
  }
  const service = stack.use(startHere(env, { demo: true }))
  await service.waitForOutput(/Stop with Ctrl-C\./)
  url = /listens on (\S+)/.exec(service.stdout())?.[1] ?? ''
  const [, email = '', password = ''] = /Sign in as (\S+) with the password (\S+)/.exec(service.stdout()) ?? []
  administrator = { email, password }
  printed = () => service.stdout()
  token = await readFile(join(dataDir, 'demo-token'), 'utf8')
  browser = await shareChromium()
  stack.defer(() => browser.close())
})
afterAll(() => stack.disposeAsync())

const projectOf = (name: string): TemplateProject => projects.get(name)!

/** Starts a script, killed at the end of the test. */
function start(project: TemplateProject, script: string, env: Record<string, string>): TestProcess {
  const started = project.start(script, env)
  onTestFinished(async () => void (await started.kill()))
  return started
}

test('there is a test of every template', () => {
  expect(Object.keys(TEMPLATES)).toEqual([...RECEIVERS, 'sign-in', 'realtime', 'sso', 'portal'])
})

test('the types of every project are right', async () => {
  expect(await ground.checkTypes([...projects.values()])).toBe('')
})

/** A server for the route of the template for Next.js, whose package this repository does not install. */
const NEXT_SERVER = `import { createServer } from 'node:http'
import { POST } from './app/webhooks/signalbox/route.ts'
createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const init = { method: request.method, headers: request.headers, body: Buffer.concat(chunks) }
  const answer = await POST(new Request('http://127.0.0.1' + request.url, init))
  response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
}).listen(Number(process.env.PORT), '127.0.0.1', () => console.log('The receiver listens on it'))
`

async function serveRoute({ root }: TemplateProject): Promise<TestProcess> {
  await writeFile(join(root, 'server.mjs'), NEXT_SERVER)
  const server = startProcess({ args: ['--env-file=.env', 'server.mjs'], cwd: root })
  onTestFinished(async () => void (await server.kill()))
  return server
}

describe.each(RECEIVERS)('%s', (name) => {
  test('makes its webhook, gets a test delivery, verifies it, and refuses one of somebody else', async () => {
    const project = projectOf(name)
    const port = String(ports.get(name))
    const env = { SIGNALBOX_URL: url, SIGNALBOX_TOKEN: token, PORT: port }
    expect(await project.run('connect', env)).toMatch(/Its secret is in \.env/)
    expect((await stat(join(project.root, '.env'))).mode & 0o777).toBe(0o600)
    const receiver = name === 'receiver-next' ? await serveRoute(project) : start(project, 'start', {})
    await receiver.waitForOutput(/The receiver listens on/)
    expect(await project.run('try', { SIGNALBOX_URL: url, SIGNALBOX_TOKEN: token })).toBe(
      'The test delivery is success after 1 attempt(s).\n',
    )
    await receiver.waitForOutput(/^webhook\.test {2}[0-9a-f-]{36}/m)
    const foreign = await fetch(`http://127.0.0.1:${port}/webhooks/signalbox`, { method: 'POST', body: '{}' })
    expect(foreign.status).toBe(401)
  })
})

test('sign-in registers itself, and a user signs in, also in two tabs at once, and out', async () => {
  const project = projectOf('sign-in')
  const port = String(await findFreePort())
  await project.run('connect', { SIGNALBOX_URL: url, SIGNALBOX_TOKEN: token, PORT: port })
  await start(project, 'start', {}).waitForOutput(/The app is at/)
  const origin = `http://127.0.0.1:${port}`
  const { page, giveBack } = await browser.lend()
  await page.goto(`${origin}/`)
  await page.getByRole('link', { name: 'Sign in' }).click()
  await page.getByText('to continue to My app').waitFor()
  await page.getByLabel('E-mail').fill(administrator.email)
  await page.getByLabel('Password', { exact: true }).fill(administrator.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('button', { name: 'Allow', exact: true }).click()
  await page.waitForURL(`${origin}/`)
  expect(await page.locator('#who').textContent()).toBe(`Signed in as ${administrator.email}`)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(/end-session|sign-out/)
  await page.goto(`${origin}/`)
  await page.getByRole('link', { name: 'Sign in' }).waitFor()
  await giveBack()
  await checkTwoTabs(
    origin,
    async (visitor, address) => (await walk(url, visitor, { url: address, answers: { user: administrator } })).location,
  )
  await checkOpenSignIns(origin)
})

test('realtime shows an event of the demonstration as it happens, also beside newer contracts, and builds', async () => {
  const call = async (method: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(`${url}/api/v3${path}`, { method, headers, body: JSON.stringify(body) })
    return ((await answer.json()) as { data: { document_id: string } }).data
  }
  // What a reader of other guides has left.
  const other = await call('POST', '/identity/account', { name: 'Acme' })
  await call('POST', '/contract/contract', { name: 'Newer', account: other.document_id })
  const project = projectOf('realtime')
  const port = String(await findFreePort())
  await start(project, 'start', { SIGNALBOX_URL: url, PORT: port, NO_COLOR: '1' }).waitForOutput(/Local: +http/)
  const { page, giveBack } = await browser.lend()
  await page.goto(`http://127.0.0.1:${port}/`)
  await page.getByLabel('E-mail').fill(administrator.email)
  await page.getByLabel('Password').fill(administrator.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect.poll(() => page.getByRole('status').textContent()).toBe('live')
  expect(await page.locator('#account').textContent()).toMatch(/ of Demo account \(/)
  // The contract of the first command that the start printed.
  const [, id = ''] = /curl .*-X PATCH \S+\/contract\/([0-9a-f-]{36}) /.exec(printed()) ?? []
  expect(id).not.toBe('')
  await call('PATCH', `/contract/contract/${id}`, { name: 'Changed by hand' })
  await page
    .getByRole('listitem')
    .filter({ hasText: `contract.update  ${id}` })
    .waitFor()
  await giveBack()
  await project.run('build')
  expect((await stat(join(project.root, 'dist', 'index.html'))).size).toBeGreaterThan(100)
})

test('sso signs a user in at one app, on another domain by a handshake, and out at both', async () => {
  const project = projectOf('sso')
  const [a, b] = [await findFreePort(), await findFreePort()]
  const env = { SIGNALBOX_URL: url, APP_A_PORT: String(a), APP_B_PORT: String(b) }
  await start(project, 'start', env).waitForOutput(/App B, on another domain/)
  const { page, giveBack } = await browser.lend()
  await page.goto(`http://b.localhost:${b}/orders`)
  expect(new URL(page.url()).host).toBe(`a.localhost:${a}`)
  await page.getByLabel('E-mail').fill(administrator.email)
  await page.getByLabel('Password').fill(administrator.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(`http://b.localhost:${b}/orders`)
  expect(await page.locator('#who').textContent()).toBe(`Signed in as ${administrator.email}.`)
  await page.getByRole('button', { name: 'Sign out everywhere' }).click()
  await page.goto(`http://a.localhost:${a}/`)
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  await giveBack()
})

test('portal makes a key of its own, and two customers of the platform see their own webhooks', async () => {
  // The service would build it after its start too; once is enough.
  await buildConsole()
  const project = projectOf('portal')
  const port = String(platformPort)
  const env = { SIGNALBOX_URL: url, SIGNALBOX_TOKEN: token, PORT: port }
  expect(await project.run('connect', env)).toMatch(/The key of the platform is in \.env/)
  expect((await stat(join(project.root, '.env'))).mode & 0o777).toBe(0o600)
  await start(project, 'start', {}).waitForOutput(/The platform is at/)
  const origin = `http://127.0.0.1:${port}`
  expect((await fetch(`${origin}/portal-link`, { method: 'POST' })).status).toBe(401)
  const long = await fetch(`${origin}/sign-in`, { method: 'POST', body: `email=${'a'.repeat(1 << 20)}` }).catch(
    () => null,
  )
  expect(long?.status ?? 401).toBe(401)
  const open = async (email: string, password: string) => {
    const { page, giveBack } = await browser.lend()
    await page.goto(origin)
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    return { page, portal: page.frameLocator('iframe'), giveBack }
  }
  const ada = await open('ada@acme.example', 'acme')
  await ada.portal.getByRole('link', { name: 'Add a webhook' }).click()
  await ada.portal.getByLabel('Callback URL').fill(`http://127.0.0.1:${[...ports.values()][0]}/of-acme`)
  await ada.portal.getByLabel('contract.update').check()
  await ada.portal.getByRole('button', { name: 'Create the webhook' }).click()
  await expect.poll(() => ada.page.getByRole('status').textContent(), { timeout: 30_000 }).toMatch(/webhook/)
  const bob = await open('bob@globex.example', 'globex')
  await bob.portal.getByRole('link', { name: 'Add a webhook' }).waitFor()
  expect(await bob.portal.getByText('of-acme').count()).toBe(0)
  for (const { giveBack } of [ada, bob]) await giveBack()
})
