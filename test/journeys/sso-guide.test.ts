import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { expect, test } from 'vitest'
import { walk } from '../harness/browser/oauth-service.ts'
import { buildVisitor } from '../harness/browser/visitor.ts'
import { listBlocks, openGuideShell, startGuideService } from '../harness/process/guide-shell.ts'
import { findFreePort } from '../harness/process/port.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'

const GUIDE = join(PROJECT_ROOT, 'docs/guides/sso.md')

test('the guide for one sign-in leads to a handshake: by its settings, its link and its commands', async () => {
  const port = await findFreePort()
  const base = `http://localhost:${port}`
  const blocks = listBlocks((await readFile(GUIDE, 'utf8')).replaceAll('http://localhost:3000', base))
  const [settings, handshake, ...more] = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text)
  const links = blocks.filter(({ language }) => language === 'text').map(({ text }) => text.trim())
  expect([links.length, more]).toEqual([1, []])

  await using shell = await openGuideShell()
  await shell.run(settings ?? '')
  // A start in the checkout reads this file; that of the test takes all of its environment from its caller.
  const written = parseEnv(await readFile(join(shell.checkout, '.env'), 'utf8')) as Record<string, string>
  expect(Object.keys(written).sort()).toEqual(['AUTH_REDIRECT_ALLOW_LIST', 'SSO_HANDSHAKE_SECRET', 'SSO_TARGETS'])
  await using service = await startGuideService(shell, { PORT: String(port), ...written })
  const [, password = ''] = /with the password (\S+)/.exec(service.stdout()) ?? []

  const link = new URL(links[0]?.replace('https://id.example.com', base) ?? '')
  const user = { email: 'admin@signalbox.localhost', password }
  const browser = buildVisitor()
  const toOrders = /^https:\/\/app\.example\.com\/orders\?sso_token=[\w.-]+$/
  expect((await walk(base, browser, { url: link.href, answers: { user } })).location).toMatch(toOrders)
  // A user who is signed in passes through.
  expect((await walk(base, browser, { url: link.href, answers: {} })).location).toMatch(toOrders)

  await shell.run(`set -u; export PASSWORD='${password}'`)
  const printed = await shell.run(handshake ?? '')
  expect(printed).toMatch(/"redirect_url":"https:\/\/app\.example\.com\/\?sso_token=[\w.-]+"/)
})
