import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const CHECKOUT = join(import.meta.dirname, '..')

/** A repository with one rule, whose tests leave its first bound open. */
const FILES = {
  '.gitignore': 'node_modules\n',
  'package.json': '{ "type": "module" }\n',
  'vitest.config.ts': [
    "import { defineConfig } from 'vitest/config'",
    'export default defineConfig({ test: { isolate: false, experimental: { viteModuleRunner: false, nodeLoader: false } } })',
  ].join('\n'),
  // A module that computes once when loaded, and a module that loads it.
  'bound.ts': 'export const BOUND = 5 + 5\n',
  'rule.ts': [
    "import { BOUND } from './bound.ts'",
    "import { rest } from './rest.ts'",
    'export function isAllowed(count: number): boolean {',
    '  return count < BOUND',
    '}',
    'export function countDown(from: number): number {',
    '  let left = from',
    '  while (left > 0) left -= rest(1)',
    '  return left',
    '}',
  ].join('\n'),
  // Of a loop that a change makes endless: it stands still without a processor.
  'rest.ts': [
    'export function rest(ms: number): number {',
    '  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)',
    '  return ms',
    '}',
  ].join('\n'),
  'rule.test.ts': [
    "import { expect, test } from 'vitest'",
    "import { countDown, isAllowed } from './rule.ts'",
    "test('few are allowed', () => expect([isAllowed(9), isAllowed(11)]).toEqual([true, false]))",
    "test('counts down', () => expect([countDown(3), countDown(0)]).toEqual([0, 0]))",
  ].join('\n'),
}

test('lists the change that no test notices, counts those that are noticed, and leaves the repository as it was', async () => {
  const root = await mkdtemp(join(tmpdir(), 'signalbox-rule-'))
  try {
    for (const [name, text] of Object.entries(FILES)) await writeFile(join(root, name), text)
    await symlink(join(CHECKOUT, 'node_modules'), join(root, 'node_modules'))
    await promisify(execFile)('git', ['init', '--quiet'], { cwd: root })
    const mutate = (...paths: string[]) => {
      const args = [
        join(CHECKOUT, 'tools/mutate.ts'),
        ...paths,
        '--root',
        root,
        '--tests',
        'rule.test',
        '--patience',
        '10',
      ]
      return promisify(execFile)(process.execPath, args, { cwd: root }).then(
        (output) => ({ ...output, code: 0 }),
        (error: { code: number; stdout: string; stderr: string }) => error,
      )
    }
    const { code, stdout, stderr } = await mutate('bound.ts', 'rule.ts')
    expect(stdout.match(/^survived: .*$/gm)).toEqual(['survived: rule.ts:4  < -> <='])
    expect(stdout).toMatch(/killed: bound\.ts:1 {2}\+ -> - \| rule\.test\.ts > few are allowed/)
    expect(stdout).toContain('timeout: rule.ts:8  -= -> +=')
    expect(stdout).toMatch(/killed: rule\.ts:8 {2}left > 0 -> false \| rule\.test\.ts > counts down/)
    expect(stdout).toMatch(/^all +6 +5 +0 +1 +0$/m)
    expect(stderr).toContain('tools/mutation/explained.ts')
    expect(code).toBe(1)
    const good = await mutate('bound.ts')
    expect([good.code, good.stderr, good.stdout]).toEqual([0, '', expect.stringMatching(/^all +1 +1 +0 +0 +0$/m)])
    expect(await readFile(join(root, 'rule.ts'), 'utf8')).toBe(FILES['rule.ts'])
  } finally {
    await rm(root, { recursive: true, force: true })
  }
})
