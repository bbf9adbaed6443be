import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { shareChromium } from '../../../test/browser/chromium.ts'
import { REFUSAL_REASONS } from '../src/verification-error.ts'
import { BODY, deliveryHeaders, EVENT_ID, SECRET, SIGNED_AT } from './delivery-fixture.ts'

const run = promisify(execFile)
const packageFolder = fileURLToPath(new URL('..', import.meta.url))
const build = fileURLToPath(new URL('../../../tools/build-package.mjs', import.meta.url))
const tsc = fileURLToPath(new URL('../../../node_modules/typescript-7/bin/tsc', import.meta.url))
const manifest = JSON.parse(await readFile(join(packageFolder, 'package.json'), 'utf8')) as {
  exports: Record<string, { import: { types: string; default: string } }>
  dependencies?: unknown
  peerDependencies?: unknown
}
const input = { secret: SECRET, body: BODY, headers: deliveryHeaders(), nowMs: SIGNED_AT * 1000 }

/** Runs the compiler; its complaints, empty when there are none. */
function runTsc(args: string[]): Promise<string> {
  return run(process.execPath, [tsc, ...args]).then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  )
}

/** The TypeScript examples of the README; test/packages/nest-example.ts compiles and runs the one for Nest. */
async function readExamples(): Promise<string[]> {
  const readme = await readFile(join(packageFolder, 'README.md'), 'utf8')
  const examples = [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((match) => match[1]!)
  return examples.filter((source) => !source.includes('@nestjs/'))
}

let consumer: string
let dist: string

// Built into a temporary folder as a consumer would have it: node_modules/@signalbox/webhooks.
beforeAll(async () => {
  consumer = await mkdtemp(join(tmpdir(), 'signalbox-webhooks-'))
  const installed = join(consumer, 'node_modules', '@signalbox', 'webhooks')
  dist = join(installed, 'dist')
  await mkdir(dist, { recursive: true })
  await cp(join(packageFolder, 'package.json'), join(installed, 'package.json'))
  await run(process.execPath, [build, dist], { cwd: packageFolder })
})

afterAll(() => rm(consumer, { recursive: true, force: true }))

describe('the built package', () => {
  test('has a file for every export and no dependency', async () => {
    const built = new Set(await readdir(dist))
    const wanted = Object.values(manifest.exports).flatMap(({ import: entry }) => [
      basename(entry.types),
      basename(entry.default),
    ])
    expect(wanted.filter((file) => !built.has(file))).toEqual([])
    expect([manifest.dependencies, manifest.peerDependencies]).toEqual([undefined, undefined])
  })

  test('imports only its own files', async () => {
    for (const file of (await readdir(dist)).filter((name) => name.endsWith('.js'))) {
      const source = await readFile(join(dist, file), 'utf8')
      const specifiers = [...source.matchAll(/^(?:import|export)\b[^;=]*?['"]([^'"]+)['"];$/gm)].map(
        (match) => match[1],
      )
      expect(
        specifiers.filter((specifier) => !/^\.\/[a-z0-9.-]+\.js$/.test(specifier!)),
        file,
      ).toEqual([])
    }
  })

  test('verifies where there is WebCrypto and nothing of Node', async () => {
    const names = Object.values(manifest.exports).map((entry) => basename(entry.import.default, '.js'))
    const script = fileURLToPath(new URL('./worker-like.mjs', import.meta.url))
    const flags = ['--experimental-vm-modules', '--no-warnings']
    const { stdout } = await run(process.execPath, [...flags, script, dist, JSON.stringify({ ...input, names })])
    expect(JSON.parse(stdout)).toEqual({
      genuine: true,
      bytes: true,
      forged: 'signature_mismatch',
      loaded: names.map(() => true),
      bare: 'undefinedundefinedundefined',
    })
  })

  test('resolves by its exports in Node, and its types reach the consumer', async () => {
    await writeFile(join(consumer, 'package.json'), '{"type":"module"}')
    const program = `import { verifyDelivery } from '@signalbox/webhooks'
      import { receiveWebhook } from '@signalbox/webhooks/hono'
      const input = ${JSON.stringify(input)}
      const envelope = await verifyDelivery({ ...input, now: () => input.nowMs })
      const id: string = envelope.id
      // @ts-expect-error an id is no number
      const wrong: number = envelope.id
      console.log(id, typeof wrong, typeof receiveWebhook)`
    const file = join(consumer, 'program.ts')
    await writeFile(file, program)
    const options = ['--module', 'nodenext', '--target', 'es2022', '--strict', '--types', '', '--lib', 'es2023,dom']
    expect(await runTsc(['--noEmit', '--ignoreConfig', ...options, file])).toBe('')
    const { stdout } = await run(process.execPath, [file])
    expect(stdout.trim()).toBe(`${EVENT_ID} string function`)
  })

  test('has a README whose examples compile, and whose example for tests prints the documented output', async () => {
    const examples = await readExamples()
    expect(examples.length).toBeGreaterThan(8)
    // The frameworks are not installed here; what the adapters need of them is declared in the package itself.
    const declarations = `declare module 'express'
      declare module 'hono' {
        type Context<E extends { Bindings: object }> = {
          env: E['Bindings']
          req: { raw: Request; arrayBuffer(): Promise<ArrayBuffer> }
        }
        class Hono<E extends { Bindings: object }> {
          post(path: string, handler: (context: Context<E>) => Promise<Response>): this
        }
      }
      declare module 'fastify'
      declare const process: { env: Record<string, string | undefined> }`
    await writeFile(join(consumer, 'frameworks.d.ts'), declarations)
    await writeFile(join(consumer, 'package.json'), '{"type":"module"}')
    const files = examples.map((_source, index) => join(consumer, `example-${index}.ts`))
    for (const [index, source] of examples.entries()) await writeFile(files[index]!, source)
    const options = ['--module', 'nodenext', '--target', 'es2022', '--strict', '--types', '', '--lib', 'es2023,dom']
    const checked = await runTsc([
      '--noEmit',
      '--ignoreConfig',
      ...options,
      join(consumer, 'frameworks.d.ts'),
      ...files,
    ])
    expect(checked).toBe('')
    const program = examples.findIndex((source) => source.includes('signDelivery'))
    const { stdout } = await run(process.execPath, [files[program]!])
    const claims = [...examples[program]!.matchAll(/\/\/ (true|false)$/gm)].map((match) => match[1])
    expect(stdout.trim().split('\n')).toEqual(claims)
    expect(claims).toEqual(['true', 'false'])
  })

  test('documents every reason in its README, and no other', async () => {
    const readme = await readFile(join(packageFolder, 'README.md'), 'utf8')
    const section = readme.slice(readme.indexOf('## Reasons'), readme.indexOf('## Events'))
    const documented = [...section.matchAll(/^\| `([a-z_]+)` \|/gm)].map((match) => match[1])
    expect(documented.sort()).toEqual([...REFUSAL_REASONS].sort())
  })

  test('verifies in Chromium, loaded as plain modules', async () => {
    const server = createServer(async (request, response) => {
      const name = basename(request.url!)
      response.setHeader('content-type', name === 'page' ? 'text/html' : 'text/javascript')
      response.end(name === 'page' ? '<!doctype html>' : await readFile(join(dist, name)).catch(() => ''))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const browser = await shareChromium()
    try {
      const page = await browser.newPage()
      await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/page`)
      const answers = await page.evaluate(`(async (given) => {${CHECK_IN_PAGE}})(${JSON.stringify(input)})`)
      expect(answers).toEqual(['ok', 'ok', 'signature_mismatch', 'timestamp_too_old'])
    } finally {
      await browser.close()
      server.close()
    }
  })
})

/** Runs in the page; text, because the test runner rewrites `import()` in functions. */
const CHECK_IN_PAGE = `
  const { checkDelivery } = await import('/verify-delivery.js')
  const request = { secret: given.secret, body: given.body, headers: new Headers(given.headers), now: () => given.nowMs }
  const checks = [
    await checkDelivery(request),
    await checkDelivery({ ...request, body: new TextEncoder().encode(given.body) }),
    await checkDelivery({ ...request, body: given.body + '\\n' }),
    await checkDelivery({ ...request, now: () => given.nowMs + 301_000 }),
  ]
  return checks.map((check) => (check.ok ? 'ok' : check.reason))`
