import { describe, expect, test } from 'vitest'
import { findBrokenCitations, findDanglingCitations, findRepeatedAnchors } from './tidy/citation-rules.ts'
import { EXCEPTIONS } from './tidy/exceptions.ts'
import {
  findCrowdedFolders,
  findFileCircles,
  findFolderCircles,
  findForeignStores,
  findPackageEscapes,
  findWrongDirections,
} from './tidy/import-rules.ts'
import { findSlowStarters } from './tidy/project-rules.ts'
import {
  findBadNames,
  findLongClosures,
  findLongFiles,
  findLongFunctions,
  findLongParameterLists,
  findLooseDependencies,
  findRepeatedTestNames,
  findUndocumented,
} from './tidy/shape-rules.ts'
import {
  buildSourceFile,
  type Finding,
  listImports,
  maskText,
  readRepository,
  type SourceFile,
} from './tidy/source-file.ts'
import { BANNED_TEXTS, findBannedText } from './tidy/text-rules.ts'

/** A rule of the repository, with a file that breaks it and one that does not: so a rule that finds nothing is noticed. */
interface Rule {
  name: string
  find: (files: readonly SourceFile[]) => Finding[]
  /** Path and text of the files of a repository that breaks the rule once. */
  broken: Record<string, string>
  kept: Record<string, string>
}

/** For each banned text, files that hold it and files that do not. */
const BANNED_SAMPLES: Record<string, Pick<Rule, 'broken' | 'kept'>> = {
  'time comes in as an argument': {
    broken: { 'src/a.ts': 'const now = new Date()\n' },
    kept: { 'src/a.ts': 'const now = new Date(clock.now())\n' },
  },
  'fields of the log are in snake case': {
    broken: { 'src/a.ts': 'logger.warn({ err: error, userId }, "not sent")\n' },
    kept: { 'src/a.ts': 'logger.warn({ err: error, user: userId, size: measure(a, maxSize) }, "not sent")\n' },
  },
  'SQL stands in stores': {
    broken: { 'src/webhook/registry/webhook.ts': "db.deleteFrom('webhook')\n" },
    kept: {
      'src/webhook/registry/webhook.store.ts': "db.deleteFrom('webhook')\n",
      'src/postgres/migration/migrate.ts': 'client.query(text)\n',
    },
  },
  'a permission is written once': {
    broken: { 'src/a.ts': "const scope = findPermissionScope(input.caller, 'user:find-one')\n" },
    kept: { 'src/a.ts': 'const scope = findPermissionScope(caller, permission)\n' },
  },
  'no test asserts nothing': {
    broken: { 'src/a.test.ts': 'expect(true).toBe(true)\n' },
    kept: { 'src/a.test.ts': 'expect(isTrue).toBe(true)\n' },
  },
  'no test sleeps': {
    broken: { 'src/a.test.ts': 'await new Promise((resolve) => setTimeout(resolve, 100))\n' },
    kept: { 'src/a.test.ts': 'clock.advance(100)\n' },
  },
  'a comment begins with its subject': {
    broken: { 'src/a.ts': '/** What passes between sweeps, ms. */\nconst SWEEP_MS = 1_000\n' },
    kept: {
      'src/a.ts': '/** Interval between sweeps, ms: what a sweep leaves waits for it. */\nconst SWEEP_MS = 1_000\n',
    },
  },
  'nothing is left for later': {
    broken: { 'src/a.ts': `// TO${'DO'}: mend\n` },
    kept: { 'src/a.ts': 'const todo = planMigrations()\n' },
  },
  "no path of somebody's machine": {
    broken: { 'README.md': `cd ${'/ho'}me/jane/signalbox\n` },
    kept: { 'README.md': 'see src/work/place and https://example.com/home/page\n' },
  },
  'no registry host': {
    broken: { '.npmrc': `registry${'='}https://npm.example.com/\n` },
    kept: { '.npmrc': 'omit-lockfile-registry-resolved=true\n' },
  },
}

const RULES: Rule[] = [
  {
    name: 'imports go down the list of areas',
    find: findWrongDirections,
    broken: { 'src/http/route/route.ts': "import type { Webhook } from '../../webhook/registry/webhook.ts'\n" },
    kept: {
      'src/app/app.ts': "import { routes } from '../webhook/registry/webhook.routes.ts'\n",
      'src/webhook/registry/webhook.routes.ts': "import { defineRoute } from '../../http/route/route.ts'\n",
      'src/invoice/invoice.routes.ts': "import { defineRoute } from '../http/route/route.ts'\n",
    },
  },
  {
    name: 'no files import each other in a circle, types included',
    find: findFileCircles,
    broken: {
      'src/a/one.ts': "import type { Two } from './two.ts'\n",
      'src/a/two.ts': "import type { Three } from './three.ts'\n",
      'src/a/three.ts': "import type { One } from './one.ts'\n",
    },
    kept: {
      'src/a/one.ts': "import type { Two } from './two.ts'\nimport type { Three } from './three.ts'\n",
      'src/a/two.ts': "import type { Three } from './three.ts'\n",
      'src/a/three.ts': '',
    },
  },
  {
    name: 'no folders import each other in a circle',
    find: findFolderCircles,
    broken: {
      'src/oauth/client/client.ts': "import { grant } from '../grant/grant.ts'\n",
      'src/oauth/grant/grant.ts': "import type { Scope } from '../scope/scope.ts'\n",
      'src/oauth/scope/scope.ts': "import type { Client } from '../client/client.ts'\n",
    },
    kept: {
      'src/oauth/client/client.ts':
        "import { grant } from '../grant/grant.ts'\nimport { scope } from '../scope/scope.ts'\n",
      'src/oauth/grant/grant.ts': "import { scope } from '../scope/scope.ts'\n",
      'src/oauth/grant/grant.test.ts': "import { client } from '../client/client.ts'\n",
    },
  },
  {
    name: 'a folder and its own files are no circle',
    find: findFolderCircles,
    broken: {
      'src/webhook/webhook.ts': "import { post } from './delivery/post.ts'\n",
      'src/webhook/delivery/post.ts': "import type { Webhook } from '../webhook.ts'\n",
    },
    kept: { 'src/webhook/webhook.ts': "import { post } from './delivery/post.ts'\n" },
  },
  {
    name: 'no folder is too full to see',
    find: findCrowdedFolders,
    broken: Object.fromEntries(Array.from({ length: 16 }, (_, n) => [`src/webhook/registry/rule-${n}.ts`, ''])),
    kept: {
      ...Object.fromEntries(Array.from({ length: 15 }, (_, n) => [`src/webhook/registry/rule-${n}.ts`, ''])),
      'src/webhook/registry/rule.test.ts': '',
    },
  },
  {
    name: 'no feature uses the store of another',
    find: findForeignStores,
    broken: { 'src/webhook/sweeps.ts': "import { deleteOldAuditEntries } from '../event/recording/audit.store.ts'\n" },
    kept: {
      'src/identity/sweeps.ts': "import { deleteEndedMails } from './mail/outbox.store.ts'\n",
      'src/identity/user/user.ts':
        "import type { RoleRecord } from '../access/role.store.ts'\nimport { loadRole } from '../access/role.ts'\nimport { findUser } from '../user-record/user.store.ts'\n",
    },
  },
  {
    name: 'packages import nothing of the service',
    find: findPackageEscapes,
    broken: { 'packages/webhooks/src/verify.ts': "import { sign } from '../../../src/delivery/signature.ts'\n" },
    kept: { 'packages/webhooks/src/verify.ts': "import { decode } from './base64.ts'\n" },
  },
  {
    name: 'files are named by their concept',
    find: findBadNames,
    broken: { 'src/webhook/utils.ts': '' },
    kept: { 'src/outbound/guard/callback-url.ts': '', 'src/webhook/registry/webhook.store.test.ts': '' },
  },
  {
    name: 'no file is too long to read',
    find: findLongFiles,
    broken: { 'src/long.ts': 'x\n'.repeat(301) },
    kept: { 'src/long.ts': 'x\n'.repeat(300), 'src/long.test.ts': 'x\n'.repeat(500) },
  },
  {
    name: 'no function is too long to see',
    find: findLongFunctions,
    broken: { 'src/a.ts': `export async function run(\n  a: string,\n): Promise<void> {\n${'  a()\n'.repeat(67)}}\n` },
    kept: {
      'src/a.ts': `export async function run(parts: {\n  a: string\n}): Promise<void> {\n${'  a()\n'.repeat(66)}}\n`,
    },
  },
  {
    name: 'no closure is too long to follow',
    find: findLongClosures,
    broken: {
      'src/a.ts': `export function build() {\n${'  function a() {\n    b()\n  }\n'.repeat(40)}}\n`,
    },
    kept: {
      'src/a.ts': `export function build() {\n${'  function a() {\n  }\n'.repeat(59)}}\n`,
    },
  },
  {
    name: 'after three parameters comes an object',
    find: findLongParameterLists,
    broken: {
      'src/a.ts': 'function run(deps: Deps, a: string, b: Map<string, number>, c: () => void, d = [1, 2]) {}\n',
    },
    kept: {
      'src/a.ts':
        'function run<T, U, V, W>(deps: Deps, db: Database, a: { b: T; c: U }, b: Map<V, W>, c: (a: T, b: U) => void,\n) {}\n',
    },
  },
  {
    name: 'exported functions say what they do',
    find: findUndocumented,
    broken: { 'src/a.ts': '/** Of the file. */\n\nexport function run() {}\n' },
    kept: { 'src/a.ts': '/** Runs. */\nexport async function run() {}\nfunction own() {}\n' },
  },
  {
    name: 'no test name stands twice',
    find: findRepeatedTestNames,
    broken: { 'src/a.test.ts': "test('one', () => {})\ntest('one', () => {})\n" },
    kept: {
      'src/a.test.ts':
        "describe('a', () => {\n  test('one', () => {})\n})\ndescribe('b', () => {\n  test('one', () => {})\n})\n",
    },
  },
  {
    name: 'dependencies are exact and come from nowhere in particular',
    find: findLooseDependencies,
    broken: { 'package.json': '{"dependencies":{"pg":"^8.0.0"}}' },
    kept: { 'package.json': '{"dependencies":{"pg":"8.0.0"}}', 'package-lock.json': '{"packages":{"":{}}}' },
  },
  {
    name: 'citations lead to a rule of the contract or to a decision',
    find: findBrokenCitations,
    broken: {
      'src/a.ts': '// docs/contract/delivery.md#retry-times\n',
      'docs/contract/delivery.md': '# Delivery\n\n## Retry timing\n\n```\n## Retry times\n```\n',
    },
    kept: {
      'src/a.ts': '// docs/contract/delivery.md#retry-timing, docs/decisions/0001-clocks.md\n',
      'docs/contract/delivery.md': '# Delivery\n\n## Retry timing\n',
      'docs/decisions/0001-clocks.md': '# 1. Clocks\n',
    },
  },
  {
    name: 'an anchor of the contract names one rule',
    find: findRepeatedAnchors,
    broken: { 'docs/contract/a.md': '# A\n\n## Retry timing\n\n### Retry timing\n' },
    kept: { 'docs/contract/a.md': '# A\n\n## Retry timing\n', 'docs/contract/b.md': '# B\n\n## Retry timing\n' },
  },
  {
    name: 'no citation of what is not in the repository',
    find: findDanglingCitations,
    broken: {
      'migrations/0001_first.sql': '-- D79\n',
    },
    kept: {
      'src/a.ts': '/** Signs (docs/contract/webhooks.md#signature; RFC 2104). */\nconst D60 = sign(contract, key)\n',
    },
  },
  {
    name: 'a fast test starts no process',
    find: findSlowStarters,
    broken: {
      'src/a.test.ts': "import { run } from '../test/harness/run.ts'\n",
      'test/harness/run.ts': "import { spawn } from 'node:child_process'\n",
    },
    kept: {
      'src/a.test.ts': "import type { Run } from '../test/harness/run.ts'\nimport { git } from './git.ts'\n",
      'src/git.ts': "import { spawn } from 'node:child_process'\n",
      'test/command/a.test.ts': "import '../harness/run.ts'\n",
      'test/harness/run.ts': "import { spawn } from 'node:child_process'\n",
    },
  },
  ...BANNED_TEXTS.map((rule) => ({
    name: rule.name,
    find: (files: readonly SourceFile[]) => findBannedText(rule, files),
    ...BANNED_SAMPLES[rule.name]!,
  })),
]

const repository = readRepository()

describe.each(RULES.map((rule) => [rule.name, rule] as const))('%s', (name, rule) => {
  const exceptions = EXCEPTIONS[name] ?? {}
  let kept: ReturnType<typeof rule.find> | undefined
  const findBroken = () => {
    kept ??= rule.find(repository)
    return kept
  }

  test('holds in the whole repository', () => {
    const broken = findBroken().filter(({ key }) => !(key in exceptions))
    expect(broken.map(({ key, message }) => `${key}: ${message}`)).toEqual([])
  })

  test('has no exception that is not needed any more', () => {
    const found = new Set(findBroken().map(({ key }) => key))
    expect(Object.keys(exceptions).filter((key) => !found.has(key))).toEqual([])
  })

  test('is found when it is broken, and only then', () => {
    expect(rule.find(toFiles(rule.broken))).toHaveLength(1)
    expect(rule.find(toFiles(rule.kept))).toEqual([])
  })
})

test('the rules read the whole repository', () => {
  const paths = new Set(repository.map(({ path }) => path))
  for (const path of [
    'src/main.ts',
    'bin/bootstrap.mjs',
    'package-lock.json',
    'README.md',
    'migrations/0001_before_the_release.sql',
    'LICENSE',
    '.ci/run',
  ])
    expect(paths).toContain(path)
  expect(repository.flatMap(listImports).length).toBeGreaterThan(500)
})

test('every exception belongs to a rule', () => {
  const names = new Set(RULES.map(({ name }) => name))
  expect(Object.keys(EXCEPTIONS).filter((name) => !names.has(name))).toEqual([])
})

describe('what counts as code', () => {
  test.each([
    ["a('x // y') // console.log\nb", "a('      ')               \nb"],
    ['`a #{b("c", `d`)} e`; f', '`  #{b(" ", ` `)}  `; f'],
    ['/* console.\n*/ x / y / z', '           \n   x / y / z'],
    ['return /[\'"`]/.test(x)', 'return /     /.test(x)'],
    ['`#{{ a: {} }} x`+y', '`#{{ a: {} }}  `+y'],
    ["'it\\'s' + x", "'     ' + x"],
    ["'\u{1f600}' + x", "'  ' + x"],
  ])('%j', (text, expected) => {
    // `#{` stands for the `${` of a template, whose text is blanked and whose code is not.
    const toTemplate = (sample: string) => sample.replaceAll('#{', () => '${')
    expect(maskText(toTemplate(text))).toBe(toTemplate(expected))
  })

  test('imports inside strings and comments are none', () => {
    const text =
      "import a from 'a'\n// import b from 'b'\nconst c = `import d from 'd'`\nimport type { E } from './e.ts'\nimport { type F } from './f.ts'\nimport { type G, h } from './g.ts'\nimport './i.ts'\n"
    const imports = listImports(buildSourceFile('src/x.ts', text))
    expect(imports.map(({ to, isTypeOnly }) => [to, isTypeOnly])).toEqual([
      ['a', false],
      ['src/e.ts', true],
      ['src/f.ts', true],
      ['src/g.ts', false],
      ['src/i.ts', false],
    ])
  })
})

function toFiles(files: Record<string, string>): SourceFile[] {
  return Object.entries(files).map(([path, text]) => buildSourceFile(path, text))
}

test.each([
  ['a row', '/** The attempts (D12a, D13). */', 2],
  ['rows of a title', "test('D60, D64 and D74: signs', () => {})", 3],
  ['a phrase of the contract', '// contract first (contract, URL rules)', 1],
  ['a phrase on two lines', '/**\n * (RFC 9457; contract,\n * Events 2)\n */', 1],
  ['a habit', '/** One line (models, habit 14). */', 1],
  ['the words of the architecture', '/** (architecture, words) */', 1],
  ['a rule of the contract by its anchor', '/** (docs/contract/api.md#errors) */', 0],
  ['prose about a contract', '// The contract, as the API shows it; a D-link, 3D60, Ctrl-D', 0],
])('%s is told apart from what leads somewhere', (_name, text, count) => {
  expect(findDanglingCitations([buildSourceFile('src/a.ts', text)])).toHaveLength(count)
})
