import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { PROJECT_ROOT } from './harness/process/process.ts'

/**
 * The rules that tools check in `npm run check`, with the settings of this repository: each with a file that breaks it and
 * one that does not, so that a setting which finds nothing is noticed.
 */

/** Runs a tool of the checkout on planted files, with its settings beside them, and reads the JSON that it prints. */
async function runTool<Report>(
  settings: string,
  files: Readonly<Record<string, string>>,
  [program = '', ...args]: readonly string[],
): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox linted '))
  try {
    await copyFile(join(PROJECT_ROOT, settings), join(folder, settings))
    for (const [path, text] of Object.entries(files)) {
      await mkdir(join(folder, dirname(path)), { recursive: true })
      await writeFile(join(folder, path), text)
    }
    const command = [join(PROJECT_ROOT, 'node_modules', program), ...args]
    const printed = await new Promise<string>((resolve) =>
      execFile(process.execPath, command, { cwd: folder }, (_error, stdout) => resolve(stdout)),
    )
    return JSON.parse(printed) as Report
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A rule of Biome, the path and the text of a file that breaks it, and those of one that keeps it. */
type BiomeCase = [rule: string, broken: [path: string, text: string], kept: [path: string, text: string]]

const BIOME_CASES: readonly BiomeCase[] = [
  [
    'style/noProcessEnv',
    ['src/env.ts', 'export const level = process.env.LOG_LEVEL\n'],
    ['src/app/config/config.ts', 'export const level = process.env.LOG_LEVEL\n'],
  ],
  [
    'style/noProcessEnv',
    ['packages/webhooks/src/env.ts', 'export const level = process.env.LOG_LEVEL\n'],
    ['tools/env.ts', 'export const level = process.env.LOG_LEVEL\n'],
  ],
  [
    'nursery/noJsRestrictedProperties',
    ['src/half.ts', 'export const half = Math.random() / 2\n'],
    ['src/token.ts', 'export const read = (random: { bytes(count: number): Buffer }) => random.bytes(16)\n'],
  ],
  [
    'nursery/noJsRestrictedProperties',
    ['src/unique.ts', 'export const id = globalThis.crypto.randomUUID()\n'],
    ['src/unique.test.ts', 'export const id = globalThis.crypto.randomUUID()\n'],
  ],
  [
    'style/noRestrictedImports',
    ['src/bytes.ts', "import { randomBytes as bytes } from 'node:crypto'\n\nexport const token = bytes(16)\n"],
    ['src/base/random.ts', "import { randomBytes } from 'node:crypto'\n\nexport const token = randomBytes(16)\n"],
  ],
  ['suspicious/noConsole', ['src/print.ts', "console.log('one')\n"], ['tools/print.ts', "console.log('one')\n"]],
  [
    'suspicious/noConsole',
    ['packages/sso/src/print.ts', "['one'].forEach(console.log)\n"],
    ['packages/sso/src/word.ts', "export const word = 'console.log'\n"],
  ],
  [
    'suspicious/noImportCycles',
    ['src/one/one.ts', "import { two } from '../two/two.ts'\n\nexport const one = () => two\n"],
    ['src/type/one.ts', "import { two } from './two.ts'\n\nexport type One = 1\nexport const one = two\n"],
  ],
  [
    'correctness/useImportExtensions',
    ['src/vague.ts', "import { token } from './token'\n\nexport const own = token\n"],
    ['src/exact.ts', "import { read } from './token.ts'\n\nexport const own = read\n"],
  ],
  [
    'correctness/noUndeclaredDependencies',
    ['src/loads.ts', "import { run } from 'of-development'\n\nexport const own = run\n"],
    [
      'src/names.ts',
      "import type { Run } from 'of-development'\nimport { run } from 'of-production'\n\nexport const own: Run = run\n",
    ],
  ],
  [
    'style/useFilenamingConvention',
    ['src/callbackUrl.ts', 'export const one = 1\n'],
    ['src/callback-url.slow.test.ts', 'export const one = 1\n'],
  ],
  ...['test.only', 'test.skip', 'test.todo', 'describe.skipIf(true)', 'it.each([1]).only', 'test.fails'].map(
    (call, index): BiomeCase => [
      'nursery/noJsRestrictedProperties',
      [`test/narrowed-${index}.test.ts`, `${call}('one', () => {})\n`],
      [`test/whole-${index}.test.ts`, "test.each([1])('one', () => {})\n"],
    ],
  ),
  [
    'suspicious/noFocusedTests',
    ['src/focused.test.ts', "fit('one', () => {})\n"],
    ['src/unfocused.test.ts', "it('one', () => {})\n"],
  ],
  [
    'suspicious/noSkippedTests',
    ['src/skipped.test.ts', "xtest('one', () => {})\n"],
    ['src/run.test.ts', "test('one', () => {})\n"],
  ],
]

describe('Biome', () => {
  const found = new Map<string, string[]>()

  beforeAll(async () => {
    const dependencies = { dependencies: { 'of-production': '1.0.0' }, devDependencies: { 'of-development': '1.0.0' } }
    const files = {
      'package.json': JSON.stringify(dependencies),
      'src/two/two.ts': "export { three as two } from '../three.ts'\n",
      'src/three.ts': "import { one } from './one/one.ts'\n\nexport const three = () => one\n",
      'src/type/two.ts': "import type { One } from './one.ts'\n\nexport const two: One = 1\n",
      ...Object.fromEntries(BIOME_CASES.flatMap(([, broken, kept]) => [broken, kept])),
    }
    const { diagnostics } = await runTool<{ diagnostics: { category: string; location: { path: string } }[] }>(
      'biome.json',
      files,
      ['@biomejs/biome/bin/biome', 'lint', '--vcs-enabled=false', '--max-diagnostics=none', '--reporter=json', '.'],
    )
    for (const { category, location } of diagnostics)
      found.set(location.path, [...(found.get(location.path) ?? []), category])
  })

  const cases = BIOME_CASES.map(([rule, [broken], [kept]]) => [rule, broken, kept] as const)
  test.each(cases)('finds %s in %s, and not in %s', (rule, broken, kept) => {
    expect(found.get(broken)).toContain(`lint/${rule}`)
    expect(found.get(kept) ?? []).not.toContain(`lint/${rule}`)
  })
})

/** Findings of knip for one file. */
interface Unused {
  file: string
  [kind: string]: string | { name: string }[]
}

describe('knip', () => {
  const files = {
    'package.json': JSON.stringify({
      type: 'module',
      dependencies: { loaded: '1.0.0', idle: '1.0.0' },
      devDependencies: { vitest: '1.0.0' },
    }),
    'src/main.ts': "import './parts.ts'\n",
    'src/parts.ts': [
      "import { a } from 'loaded'",
      "import { b } from 'unlisted'",
      "import { c } from './missing.ts'",
      "import { picked } from './exporting.ts'",
      "new Worker(new URL('./worker.ts', import.meta.url))",
      'picked({ a, b, c })',
    ].join('\n'),
    'src/exporting.ts':
      'export interface Options { a: 1 }\nexport function picked(options: Options) {}\nexport const lonely = 1\nexport type Alone = 1\n',
    'src/worker.ts': 'export {}\n',
    'src/old.ts': 'export {}\n',
    'src/tested.ts': 'export const tested = 1\n',
    'src/tested.test.ts':
      "import { test } from 'vitest'\nimport { tested } from './tested.ts'\n\ntest('a', () => tested)\n",
  }
  /** Findings, as `file: kind of finding: name`. */
  const find = async (...args: string[]) => {
    const command = ['knip/bin/knip.js', '--no-progress', '--no-config-hints', '--reporter=json', ...args]
    const { issues } = await runTool<{ issues: Unused[] }>('knip.jsonc', files, command)
    return issues
      .flatMap(({ file, ...kinds }) =>
        Object.entries(kinds).flatMap(([kind, names]) =>
          (names as { name: string }[]).map(({ name }) => `${file}: ${kind}: ${name}`),
        ),
      )
      .sort()
  }

  test('finds dead files, exports, types and dependencies, and what is imported without being there', async () => {
    expect(await find()).toEqual([
      'package.json: dependencies: idle',
      'src/exporting.ts: exports: lonely',
      'src/exporting.ts: types: Alone',
      'src/old.ts: files: src/old.ts',
      'src/parts.ts: unlisted: unlisted',
      'src/parts.ts: unresolved: ./missing.ts',
    ])
  })

  test('finds files of the service that only tests use', async () => {
    expect(await find('--production', '--include', 'files,dependencies')).toEqual([
      'package.json: dependencies: idle',
      'src/old.ts: files: src/old.ts',
      'src/tested.ts: files: src/tested.ts',
    ])
  })
})

test('squawk finds what breaks or blocks the release before, unless the file says that it must', async () => {
  const files = {
    'migrations/0900_breaking.sql': `-- additive
alter table account drop column name;
alter table account rename column a to b;
drop table contract;
alter table account add column c integer not null;
alter table account alter column d type text;
alter table account add constraint e check (f > 1);
alter table account add constraint g foreign key (h) references contract (i);
`,
    'migrations/0901_kept.sql': `-- not additive: accounts lose their names
-- squawk-ignore ban-drop-column
alter table account drop column name;
alter table account add column c integer;
create table invoice (document_id uuid primary key, account uuid not null references account (document_id));
create index invoice_account_idx on invoice (account);
`,
  }
  const command = ['squawk-cli/js/bin/squawk', '--reporter', 'json', ...Object.keys(files)]
  const found = await runTool<{ file: string; rule_name: string }[]>('.squawk.toml', files, command)
  expect(new Set(found.map(({ file, rule_name: rule }) => `${file}: ${rule}`))).toEqual(
    new Set([
      'migrations/0900_breaking.sql: ban-drop-column',
      'migrations/0900_breaking.sql: renaming-column',
      'migrations/0900_breaking.sql: ban-drop-table',
      'migrations/0900_breaking.sql: adding-required-field',
      'migrations/0900_breaking.sql: changing-column-type',
      'migrations/0900_breaking.sql: constraint-missing-not-valid',
      'migrations/0900_breaking.sql: adding-foreign-key-constraint',
    ]),
  )
})
