import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { signDelivery } from '../../packages/webhooks/src/testing.ts'
import { BODY, OTHER_SECRET, SECRET } from '../../packages/webhooks/test/delivery-fixture.ts'
import { findFreePort } from '../harness/process/port.ts'
import { waitFor } from '../harness/run/wait.ts'
import { type InstalledPackages, lendModule } from './packed-package.ts'
import { compileWithTypeScript5 } from './typescript-5.ts'

/** The compiler options of a new Nest project, as far as they decide over modules, decorators and types. */
const COMPILER_OPTIONS = {
  module: 'nodenext',
  moduleResolution: 'nodenext',
  target: 'es2023',
  isolatedModules: true,
  esModuleInterop: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  strictNullChecks: true,
  noImplicitAny: false,
  skipLibCheck: true,
  types: ['node'],
  outDir: 'dist',
}

async function readExample(): Promise<string> {
  const readme = await readFile('packages/webhooks/README.md', 'utf8')
  const [, source = ''] = /^### Nest\n\n```ts\n([\s\S]*?)^```$/m.exec(readme) ?? []
  return source
}

/** The example for Nest of the README of `@signalbox/webhooks`, in a project that has the package installed. */
export function testNestExample(find: () => InstalledPackages): void {
  const name =
    'the example for Nest compiles in a CommonJS project, takes a genuine delivery and answers 401 to another'
  test(name, { timeout: 240_000 }, () => checkNestExample(find().project))
}

async function checkNestExample(project: string): Promise<void> {
  for (const name of ['@nestjs', '@types/node', '@types/express', 'reflect-metadata', 'rxjs'])
    await lendModule(project, name)
  await mkdir(join(project, 'src'))
  await writeFile(join(project, 'src', 'main.ts'), await readExample())
  await writeFile(
    join(project, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: COMPILER_OPTIONS, include: ['src'] }),
  )
  compileWithTypeScript5(project)
  const port = await findFreePort()
  const env = { ...process.env, PORT: String(port), SIGNALBOX_WEBHOOK_SECRET: SECRET, NO_COLOR: '1' }
  const app = spawn(process.execPath, [join(project, 'dist', 'main.js')], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    app.kill('SIGKILL')
    if (app.exitCode === null && app.signalCode === null) await once(app, 'exit')
  })
  let printed = ''
  const started = Promise.withResolvers<void>()
  app.once('exit', () => started.reject(new Error(`Nest ended: ${printed}`)))
  app.stdout.on('data', (chunk) => {
    printed += chunk
    if (printed.includes('successfully started')) started.resolve()
  })
  await started.promise
  // Nest says so before it listens.
  await waitFor('Nest listens', () =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    ),
  )
  const post = async (secret: string) => {
    const headers = await signDelivery({ secret, body: BODY, id: (JSON.parse(BODY) as { id: string }).id })
    const url = `http://127.0.0.1:${port}/webhooks/signalbox`
    return fetch(url, { method: 'POST', body: BODY, headers: { ...headers, 'content-type': 'application/json' } })
  }
  expect((await post(SECRET)).status).toBe(204)
  expect(printed).toContain((JSON.parse(BODY) as { type: string }).type)
  const refused = await post(OTHER_SECRET)
  expect(refused.status).toBe(401)
  expect(await refused.text()).toContain('signature')
}
