import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testNestExample } from './nest-example.ts'
import {
  type InstalledPackages,
  installPackages,
  lendModule,
  MODULE_SETTINGS,
  type ModuleSetting,
  runPrograms,
} from './packed-package.ts'

/** The packages as a stranger has them: packed, installed from the tarballs without a network, and used. */

const PACKAGES = [
  {
    name: 'webhooks',
    dependencies: [],
    lent: [],
    program: `
import { verifyDelivery, WebhookVerificationError } from '@signalbox/webhooks'
import { receiveWebhook } from '@signalbox/webhooks/express'
import { signDelivery } from '@signalbox/webhooks/testing'
async function main() {
  const secret = 'whsec_' + btoa('thirty-two bytes for a test only')
  const data = { account: null, resource: 'webhook', action: 'test', id: null, url: null }
  const created_at = new Date().toISOString()
  const id = '01997e2a-6c00-7000-8000-0000000000a1'
  const body = JSON.stringify({ id, type: 'webhook.test', api_version: '2026-09-11', created_at, attempt: 1, data })
  const headers = await signDelivery({ secret, body, id })
  const envelope = await verifyDelivery({ secret, body, headers })
  const refused = await verifyDelivery({ secret, body: body + ' ', headers }).catch((error) =>
    error instanceof WebhookVerificationError ? error.reason : 'another error')
  console.log(envelope.type, refused, typeof receiveWebhook({ secret, onDelivery: () => undefined }))
}
main()`,
    printed: 'webhook.test signature_mismatch function',
    testMore: testNestExample,
  },
  {
    name: 'client',
    dependencies: ['openapi-fetch', 'openapi-typescript-helpers'],
    lent: [],
    program: `
import { createSignalbox, isProblem } from '@signalbox/client'
async function main() {
  const signalbox = createSignalbox({ baseUrl: 'http://127.0.0.1:9', maxRetries: 0 })
  const answered = signalbox.identity.accountCreate({ body: { name: 'Example' } }).then(({ data }) => data.name)
  console.log(await answered.catch((error) => isProblem(error) ? error.code : error.name))
}
main()`,
    printed: 'ConnectionError',
  },
  {
    name: 'sso',
    dependencies: [],
    lent: [],
    program: `
import { createSso } from '@signalbox/sso'
import { receiveHandshake } from '@signalbox/sso/next'
async function main() {
  const sso = createSso({ service: 'https://id.example.com', origin: 'https://app.example.com' })
  const answer = await receiveHandshake(sso)(new Request('https://app.example.com/'))
  console.log(String(answer), sso.readToken(new Request('https://app.example.com/')))
}
main()`,
    printed: 'undefined undefined',
  },
  {
    name: 'portal',
    dependencies: [],
    lent: ['react', '@types/react'],
    program: `
import { mountPortal } from '@signalbox/portal'
import { Portal } from '@signalbox/portal/react'
const element = Portal.length
console.log(typeof mountPortal, element)`,
    printed: 'function 1',
  },
  {
    name: 'realtime',
    dependencies: ['pusher-js', 'tweetnacl'],
    lent: ['react', '@types/react'],
    program: `
import { accountChannel, createRealtime } from '@signalbox/realtime'
import { RealtimeProvider } from '@signalbox/realtime/react'
const realtime = createRealtime({ service: 'https://id.example.com', token: () => 'token' })
console.log(accountChannel('01997e2a-6c00-7000-8000-0000000000a1'), typeof realtime.join, typeof RealtimeProvider)`,
    printed: 'private-account-01997e2a-6c00-7000-8000-0000000000a1 function function',
  },
]

let installed: InstalledPackages
beforeAll(async () => {
  const dependencies = PACKAGES.flatMap((shipped) => shipped.dependencies)
  installed = await installPackages(
    PACKAGES.map(({ name }) => name),
    dependencies,
  )
  for (const name of new Set(PACKAGES.flatMap(({ lent }) => lent))) await lendModule(installed.project, name)
}, 300_000)
afterAll(() => installed?.[Symbol.asyncDispose]())

const printed = new Map<string, Promise<Map<string, string>>>()

/** Output of each program in a setting; one compiler run compiles all of them. */
function runIn(setting: ModuleSetting): Promise<Map<string, string>> {
  const sources = new Map(PACKAGES.map(({ name, program }) => [name, `${program.trim()}\n`]))
  const running = printed.get(setting.name) ?? runPrograms(installed.project, setting, sources)
  printed.set(setting.name, running)
  return running
}

describe.each(PACKAGES)('@signalbox/$name, packed and installed in an empty project', (shipped) => {
  test('brings the license of the repository, the README and a file for every export', async () => {
    const { files, manifest } = installed.packages.get(shipped.name)!
    const license = join('node_modules', '@signalbox', shipped.name, 'LICENSE')
    expect(await readFile(join(installed.project, license), 'utf8')).toBe(await readFile('LICENSE', 'utf8'))
    expect(files).toContain('README.md')
    const wanted = Object.values(manifest.exports).flatMap((entry) =>
      Object.values(entry).flatMap((file) => [file.types, file.default]),
    )
    expect(wanted.length).toBeGreaterThanOrEqual(4)
    expect(wanted.filter((file) => !files.includes(file.slice('./'.length)))).toEqual([])
    const strays = files.filter((file) => !/^(dist\/|package\.json$|LICENSE$|README\.md$)/.test(file))
    expect(strays).toEqual([])
  })

  test('needs no package but those it names', async () => {
    const manifestPath = join(installed.project, 'node_modules', '@signalbox', shipped.name, 'package.json')
    const { dependencies = {} } = JSON.parse(await readFile(manifestPath, 'utf8')) as { dependencies?: object }
    const needed: readonly string[] = shipped.dependencies
    expect(Object.keys(dependencies).filter((name) => !needed.includes(name))).toEqual([])
  })

  test.each(MODULE_SETTINGS.map((setting) => [setting.name, setting] as const))(
    'works with types in %s',
    async (_name, setting) => {
      expect((await runIn(setting)).get(shipped.name)).toBe(shipped.printed)
    },
  )

  shipped.testMore?.(() => installed)
})
