import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testNestExample } from './nest-example.ts'
import {
  type Installed,
  lendModule,
  MODULE_SETTINGS,
  type PackedPackages,
  packPackages,
  runProgram,
} from './packed-package.ts'

/** Each package as a stranger has it: packed, installed from the tarball without a network, and used. */

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
    name: 'realtime',
    dependencies: ['pusher-js', 'tweetnacl'],
    lent: ['react', '@types/react'],
    program: `
import { accountChannel, createRealtime } from '@signalbox/realtime'
import { RealtimeProvider } from '@signalbox/realtime/react'
const realtime = createRealtime({ service: 'https://id.example.com', token: () => 'token' })
console.log(accountChannel('01997e2a-6c00-7000-8000-0000000000a1'), typeof realtime.join, typeof RealtimeProvider)
process.exit(0)`,
    printed: 'private-account-01997e2a-6c00-7000-8000-0000000000a1 function function',
  },
]

let packed: PackedPackages
beforeAll(async () => {
  packed = await packPackages(PACKAGES.map(({ name }) => name))
}, 300_000)
afterAll(() => packed?.[Symbol.asyncDispose]())

describe.each(PACKAGES)('@signalbox/$name, packed and installed in an empty project', (one) => {
  let installed: Installed
  beforeAll(async () => {
    installed = await packed.install(one.name, one.dependencies)
    for (const name of one.lent) await lendModule(installed.project, name)
  }, 300_000)

  test('brings the license of the repository, the README and a file for every export', async () => {
    const license = join('node_modules', '@signalbox', one.name, 'LICENSE')
    expect(await readFile(join(installed.project, license), 'utf8')).toBe(await readFile('LICENSE', 'utf8'))
    expect(installed.files).toContain('README.md')
    const wanted = Object.values(installed.manifest.exports).flatMap((entry) =>
      Object.values(entry).flatMap((file) => [file.types, file.default]),
    )
    expect(wanted.length).toBeGreaterThanOrEqual(8)
    expect(wanted.filter((file) => !installed.files.includes(file.slice('./'.length)))).toEqual([])
    const strays = installed.files.filter((file) => !/^(dist\/|package\.json$|LICENSE$|README\.md$)/.test(file))
    expect(strays).toEqual([])
  })

  test.each(MODULE_SETTINGS.map((setting) => [setting.name, setting] as const))(
    'works with types in %s',
    async (_name, setting) => {
      const declared = setting.compiler ? 'declare const process: { exit(code: number): void }\n' : ''
      expect(await runProgram(installed.project, setting, `${one.program.trim()}\n${declared}`)).toBe(one.printed)
    },
  )

  one.testMore?.(() => installed)
})
