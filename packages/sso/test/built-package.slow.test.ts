import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const run = promisify(execFile)
const packageFolder = fileURLToPath(new URL('..', import.meta.url))
const modules = fileURLToPath(new URL('../../../node_modules', import.meta.url))
const build = fileURLToPath(new URL('../../../tools/build-package.mjs', import.meta.url))
const tsc = join(modules, 'typescript-7', 'bin', 'tsc')
const manifest = JSON.parse(await readFile(join(packageFolder, 'package.json'), 'utf8')) as {
  exports: Record<string, { import: { types: string; default: string } }>
  dependencies?: unknown
  peerDependencies?: unknown
}

/** Runs the compiler; its complaints, empty when there are none. */
function runTsc(args: string[]): Promise<string> {
  return run(process.execPath, [tsc, ...args]).then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  )
}

let consumer: string
let dist: string

// Built into a temporary folder as a consumer would have it: node_modules/@signalbox/sso, beside the real frameworks.
beforeAll(async () => {
  consumer = await mkdtemp(join(tmpdir(), 'signalbox-sso-'))
  const installed = join(consumer, 'node_modules', '@signalbox', 'sso')
  dist = join(installed, 'dist')
  await mkdir(dist, { recursive: true })
  await cp(join(packageFolder, 'package.json'), join(installed, 'package.json'))
  for (const name of ['express', 'fastify', 'hono', '@types'])
    await symlink(join(modules, name), join(consumer, 'node_modules', name))
  await writeFile(join(consumer, 'package.json'), '{"type":"module"}')
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

  test('resolves by its exports in Node, and its types reach the consumer', async () => {
    const program = `import { createSso } from '@signalbox/sso'
      import { receiveHandshake } from '@signalbox/sso/next'
      const sso = createSso({ service: 'https://id.example.com', origin: 'https://app.example.com' })
      const answer: Response | undefined = await receiveHandshake(sso)(new Request('https://app.example.com/'))
      // @ts-expect-error an origin is no number
      const wrong: number = sso.origin
      console.log(String(answer), typeof wrong)`
    const file = join(consumer, 'program.ts')
    await writeFile(file, program)
    const options = ['--module', 'nodenext', '--target', 'es2022', '--strict', '--types', 'node', '--skipLibCheck']
    expect(await runTsc(['--noEmit', '--ignoreConfig', ...options, file])).toBe('')
    const { stdout } = await run(process.execPath, [file])
    expect(stdout.trim()).toBe('undefined string')
  })

  test('has a README whose examples compile against the real frameworks', async () => {
    const readme = await readFile(join(packageFolder, 'README.md'), 'utf8')
    const examples = [...readme.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map((match) => match[1]!)
    expect(examples.length).toBeGreaterThan(6)
    const files = examples.map((_source, index) => join(consumer, `example-${index}.ts`))
    for (const [index, source] of examples.entries()) await writeFile(files[index]!, source)
    const options = ['--module', 'nodenext', '--target', 'es2022', '--strict', '--types', 'node', '--skipLibCheck']
    const lib = ['--lib', 'es2023,dom,dom.iterable']
    expect(await runTsc(['--noEmit', '--ignoreConfig', ...options, ...lib, ...files])).toBe('')
  })

  test('documents every option in its README', async () => {
    const readme = await readFile(join(packageFolder, 'README.md'), 'utf8')
    const source = await readFile(join(packageFolder, 'src', 'settings.ts'), 'utf8')
    const declared = source.slice(source.indexOf('export type SsoOptions'), source.indexOf('export type Settings'))
    const names = [...declared.matchAll(/^ {2}readonly (\w+)\??:/gm)].map((match) => match[1])
    const section = readme.slice(readme.indexOf('## Options'), readme.indexOf('## Requirements for this app'))
    expect(names.length).toBeGreaterThan(6)
    expect(names.filter((name) => !section.includes(`\`${name}\``))).toEqual([])
  })
})
