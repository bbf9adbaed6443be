import { spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

/**
 * The worked example of CONTRIBUTING.md, done as written: its files and lines go into a copy of this repository, its
 * commands run there. Each command has two minutes; all of it takes some seconds.
 */

const ROOT = join(import.meta.dirname, '..')
const COPIED = [
  'bin',
  'docs',
  'migrations',
  'packages',
  'src',
  'test/harness',
  'tools',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
]

let copy: string
let example: Example

beforeAll(async () => {
  example = readExample(await readFile(join(ROOT, 'CONTRIBUTING.md'), 'utf8'))
  copy = await mkdtemp(join(tmpdir(), 'signalbox example '))
  for (const path of COPIED) {
    const isOurs = (file: string) => !file.includes('node_modules') && !/[/\\]src[/\\].*\.test\.ts$/.test(file)
    await cp(join(ROOT, path), join(copy, path), { recursive: true, filter: isOurs })
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'), 'junction')
  for (const [path, text] of example.files) {
    const place = join(copy, path.replace('<next number>', await nextMigrationNumber()))
    await mkdir(dirname(place), { recursive: true })
    await writeFile(place, text)
  }
  const tree = await readFile(join(copy, 'src/app/features.ts'), 'utf8')
  const [importLine = '', treeLine = ''] = example.treeLines
  await writeFile(
    join(copy, 'src/app/features.ts'),
    importLine + tree.replace('export const FEATURES: readonly Feature[] = [\n', (start) => start + treeLine),
  )
})

afterAll(() => rm(copy, { recursive: true, force: true }))

describe('the worked example of CONTRIBUTING.md', { timeout: 120_000 }, () => {
  test('has its files', () => {
    expect([...example.files.keys()]).toEqual([
      'migrations/<next number>_invoice.sql',
      'src/invoice/invoice.store.ts',
      'src/invoice/invoice.schema.ts',
      'src/invoice/invoice.ts',
      'src/invoice/invoice.routes.ts',
      'src/invoice/invoice.test.ts',
    ])
    expect(example.treeLines).toHaveLength(2)
  })

  test('generates the catalogue, the docs, OpenAPI and the table type', async () => {
    expect(await run('tools/generate.ts')).toMatchObject({ code: 0 })
    const generated = async (path: string) => readFile(join(copy, path), 'utf8')
    for (const path of ['catalogue.json', 'docs/events.md', 'packages/webhooks/src/event-names.generated.ts'])
      for (const event of ['invoice.create', 'invoice.find-all', 'invoice.find-one'])
        expect(await generated(path)).toContain(event)
    const { paths, webhooks, components } = JSON.parse(await generated('openapi.json'))
    for (const name of ['Invoice', 'CreateInvoice', 'InvoiceAnswer', 'InvoicePage'])
      expect(components.schemas).toHaveProperty(name)
    expect(paths['/api/v3/billing/invoice'].post.operationId).toBe('invoiceCreate')
    expect(webhooks).toHaveProperty(['invoice.create'])
    expect(await generated('schema.sql')).toContain('create table "invoice"')
    expect(await generated('src/postgres/tables.generated.ts')).toContain('invoice: Invoice')
  })

  test('has the right types', async () => {
    const { output } = await run('node_modules/typescript/bin/tsc', '--noEmit', '-p', '.')
    // What the example touches; the rest of the repository is checked where it lies.
    expect(output.split('\n').filter((line) => /^src\/(?:invoice|app)/.test(line))).toEqual([])
  })

  test('passes its own tests', async () => {
    const { code, output } = await run('node_modules/vitest/vitest.mjs', 'run', '--root', copy, 'src/invoice')
    expect(output).toContain('2 passed')
    expect(code).toBe(0)
  })
})

interface Example {
  /** The text of each file by its path. */
  files: Map<string, string>
  /** What goes into src/app/features.ts: an import, and an entry. */
  treeLines: string[]
}

/** Reads the example: a code block after a line that is only a path is that file; those of step 6 are lines of the tree. */
function readExample(markdown: string): Example {
  const start = markdown.indexOf('## Add a resource of your own')
  const files = new Map<string, string>()
  for (const [, path = '', text = ''] of markdown.slice(start).matchAll(/^`([^`\n]+)`\n\n```\w+\n([\s\S]*?)^```$/gm))
    files.set(path, text)
  const step = markdown.slice(markdown.indexOf('### 6.'), markdown.indexOf('### 7.'))
  return { files, treeLines: [...step.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text) }
}

async function nextMigrationNumber(): Promise<string> {
  const names = (await readdir(join(ROOT, 'migrations'))).sort()
  return String(Number(names.at(-1)?.slice(0, 4)) + 1).padStart(4, '0')
}

/** Runs a program of the copy on this Node. Its environment is ours without what the test runner put there. */
async function run(program: string, ...args: string[]): Promise<{ code: number | null; output: string }> {
  const { NODE_OPTIONS: _, VITEST: __, TEST_DATABASE_URL: ___, ...env } = process.env
  const child = spawn(process.execPath, [join(copy, program), ...args], { cwd: copy, env: { ...env, NO_COLOR: '1' } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, output }
}
