import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase } from './harness/database/database.ts'
import { listTemplates } from './harness/database/database-url.ts'
import { type CompiledCopy, openCompiledCopy } from './harness/process/compiled-copy.ts'

/**
 * The worked example of CONTRIBUTING.md, done as written: its files and lines go into a copy of this repository, its
 * commands run there. What a reader of the example has added already is left out of the copy.
 */

const ROOT = join(import.meta.dirname, '..')
const LEFT_OUT = ['.git', '.signalbox', 'coverage', 'node_modules']
const IS_OF_EXAMPLE = /[/\\](?:src[/\\]invoice(?:[/\\]|$)|migrations[/\\]\d{4}_invoice\.sql$)/

let copy: string
let compiled: CompiledCopy
let example: Example

beforeAll(async () => {
  example = readExample(await readFile(join(ROOT, 'CONTRIBUTING.md'), 'utf8'))
  copy = await mkdtemp(join(tmpdir(), 'signalbox example '))
  for (const name of await readdir(ROOT)) {
    if (LEFT_OUT.includes(name)) continue
    const isOurs = (file: string) => !file.includes('node_modules') && !IS_OF_EXAMPLE.test(file.slice(ROOT.length))
    await cp(join(ROOT, name), join(copy, name), { recursive: true, filter: isOurs })
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'), 'junction')
  compiled = await openCompiledCopy(copy, 'worked-example')
  const number = await nextMigrationNumber()
  for (const [path, text] of example.files) {
    const place = join(copy, path.replace('<next number>', number))
    await mkdir(dirname(place), { recursive: true })
    await writeFile(place, text)
  }
  for (const insertion of example.insertions) await insert(insertion)
})

afterAll(async () => {
  await compiled?.keep()
  await rm(copy, { recursive: true, force: true })
})

describe('the worked example of CONTRIBUTING.md', { timeout: 300_000 }, () => {
  test('has its files, and its lines in files that are there', () => {
    expect([...example.files.keys()]).toEqual([
      'migrations/<next number>_invoice.sql',
      'src/invoice/invoice.schema.ts',
      'src/invoice/invoice.store.ts',
      'src/invoice/invoice.ts',
      'src/invoice/invoice.routes.ts',
      'src/invoice/invoice.test.ts',
    ])
    expect(example.insertions.map(({ path }) => path)).toEqual([
      'src/app/feature/features.ts',
      'src/app/feature/features.ts',
      'src/http/reference/parts.ts',
      'ARCHITECTURE.md',
      'test/journeys/platform-route-requests.ts',
      'test/concurrency/platform-cases.ts',
    ])
  })

  test('generates the catalogue, the docs, OpenAPI and the table type', async () => {
    // On the server of this run, which has the migrations before that of the example.
    await using database = await createTestDatabase({ content: 'migrated', isOwn: true })
    const env = { GENERATE_DATABASE_URL: database.connectionString }
    expect(await runNode([join(copy, 'tools/generate.ts')], env)).toMatchObject({ code: 0 })
    const generated = async (path: string) => readFile(join(copy, path), 'utf8')
    for (const path of ['catalogue.json', 'docs/events.md', 'packages/webhooks/src/event-names.generated.ts'])
      for (const action of ['create', 'find-all', 'find-one', 'update', 'delete'])
        expect(await generated(path)).toContain(`invoice.${action}`)
    const { paths, webhooks, components, tags } = JSON.parse(await generated('openapi.json'))
    for (const name of ['Invoice', 'CreateInvoice', 'UpdateInvoice', 'InvoiceAnswer', 'InvoicePage'])
      expect(components.schemas).toHaveProperty(name)
    expect(paths['/api/v3/billing/invoice'].post.operationId).toBe('invoiceCreate')
    expect(tags).toContainEqual({ name: 'billing', description: 'Invoices of accounts.' })
    expect(webhooks).toHaveProperty(['invoice.create'])
    expect(await generated('schema.sql')).toContain('create table "invoice"')
    expect(await generated('src/postgres/statement/tables.generated.ts')).toContain('invoice: Invoice')
  })

  test('passes the checks of format, lint and types', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'signalbox example checks '))
    try {
      for (const name of ['src', 'test', 'packages', 'package.json', 'tsconfig.json', '.gitignore'])
        await cp(join(copy, name), join(folder, name), { recursive: true })
      const lint = await checkFormat(folder)
      expect(lint.output).toContain('No fixes applied')
      expect(lint.code, lint.output).toBe(0)
      expect(await checkTypes(folder)).toEqual({ code: 0, output: '' })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('passes its own tests, the rules of the repository and the tests of every route', async () => {
    const files = ['src/invoice', 'src/http/reference', 'test/tidy.test.ts', 'test/docs.test.ts', ...SWEEPS]
    const { code, output } = await runTests(...files, '-t', NAMES)
    expect(output).toMatch(/(?:invoice\.test\.ts \(3 tests)/)
    expect(code, output).toBe(0)
  })
})

/**
 * In one worker, since each loads the whole service, and on the server that this run has, since to start another one takes
 * as long as these tests.
 */
async function runTests(...args: string[]) {
  await using database = await createTestDatabase({ content: 'empty' })
  const url = database.connectionString
  const options = ['--root', copy, '--maxWorkers', '1']
  try {
    const program = [join(copy, 'node_modules/vitest/vitest.mjs'), 'run', ...options, ...args]
    return await runNode(program, { TEST_DATABASE_URL: url })
  } finally {
    for (const name of listTemplates(url)) await database.pool.query(`drop database if exists "${name}"`)
  }
}

/** The tests that drive each route, of which those of invoices run. */
const SWEEPS = [
  'test/journeys/round-trips.test.ts',
  'test/journeys/tenant-isolation.test.ts',
  'test/journeys/permission-sweep.test.ts',
  'test/concurrency/parallel-changes.test.ts',
]

/** Of the sweeps the entries of invoices; of the rules of the repository all that read the tree. */
const NAMES = 'invoice|ARCHITECTURE|every route|every part|the repository'

const insertedSources = () => [
  ...new Set(example.insertions.map(({ path }) => path).filter((path) => path.endsWith('.ts'))),
]

interface Insertion {
  path: string
  /** The line after which the text goes. */
  after: string
  text: string
}

interface Example {
  /** The text of each file by its path. */
  files: Map<string, string>
  insertions: Insertion[]
}

/**
 * Reads the example: a code block after a line that is only a path is that file; one after `In <path>, after <line>:` are
 * lines of a file that is there.
 */
function readExample(markdown: string): Example {
  const example = markdown.slice(markdown.indexOf('## Add a resource of your own'))
  const files = new Map<string, string>()
  for (const [, path = '', text = ''] of example.matchAll(/^`([^`\n]+)`\n\n```\w+\n([\s\S]*?)^```$/gm))
    files.set(path, text)
  const found = example.matchAll(/^In `([^`\n]+)`, after `([^`\n]+)`:\n\n```\w*\n([\s\S]*?)^```$/gm)
  const insertions = [...found].map(([, path = '', after = '', text = '']) => ({ path, after, text }))
  return { files, insertions }
}

/** Adds lines to a file of the copy, unless a reader of the example has added them to the repository. */
async function insert({ path, after, text }: Insertion): Promise<void> {
  const place = join(copy, path)
  const found = (await readFile(place, 'utf8')).replaceAll(text, '')
  expect(found.split(`\n${after}\n`), `${path} has the line once: ${after}`).toHaveLength(2)
  await writeFile(
    place,
    found.replace(`\n${after}\n`, (line) => line + text),
  )
}

async function nextMigrationNumber(): Promise<string> {
  const names = (await readdir(join(copy, 'migrations'))).sort()
  return String(Number(names.at(-1)?.slice(0, 4)) + 1).padStart(4, '0')
}

/**
 * Checks format and lint of what the example adds, in a folder with the sources of the copy. Before it checks a few files Biome
 * reads all that its settings name, and the packages, which takes three times the work. Here they name those files, whose
 * imports it follows.
 */
async function checkFormat(folder: string): Promise<{ code: number | null; output: string }> {
  const settings = JSON.parse(await readFile(join(copy, 'biome.json'), 'utf8'))
  const own = ['src/invoice', ...insertedSources()]
  expect(settings.files.includes[0]).toBe('**')
  settings.files.includes.splice(0, 1, 'src/invoice/**', ...insertedSources())
  await writeFile(join(folder, 'biome.json'), JSON.stringify(settings))
  return runNode([join(copy, 'node_modules/@biomejs/biome/bin/biome'), 'check', ...own], {}, folder)
}

/**
 * Checks the types of what the example adds, against the types of all that it imports, in a folder with the sources of the copy.
 * The rest of the repository is checked where it lies, which takes five times the work, so the folder tells the compiler to
 * leave it out.
 */
async function checkTypes(folder: string): Promise<{ code: number | null; output: string }> {
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction')
  const own = insertedSources()
  const files = (await readdir(folder, { recursive: true })).filter((path) =>
    /^(?:src|test|packages)\b.*\.tsx?$/.test(path),
  )
  for (const path of files.filter((file) => !own.includes(file) && !/^src[/\\]invoice[/\\]/.test(file))) {
    const place = join(folder, path)
    await writeFile(place, `// @ts-nocheck\n${await readFile(place, 'utf8')}`)
  }
  const include = ['src/main.ts', 'src/invoice', 'test/harness/run/global-setup.ts', ...own]
  const settings = join(folder, 'tsconfig.example.json')
  await writeFile(settings, JSON.stringify({ extends: './tsconfig.json', include }))
  return run('node_modules/typescript-7/bin/tsc', '-p', settings, '--checkers', '1')
}

/** Runs a program of the copy. */
const run = (program: string, ...args: string[]) => runNode([join(copy, program), ...args])

/** Runs this Node in the copy, or in `cwd`. Its environment is ours without what the test runner put there, and `more`. */
async function runNode(args: string[], more: Record<string, string> = {}, cwd = copy) {
  const { NODE_OPTIONS: _, VITEST: __, TEST_DATABASE_URL: ___, ...env } = process.env
  const own = { NO_COLOR: '1', ...compiled.env }
  const child = spawn(process.execPath, args, { cwd, env: { ...env, ...own, ...more } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, output }
}
