import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { NEAREST } from './areas.ts'
import type { Mutant } from './mutant.ts'
import { buildReach, hasRun, rankTestFiles } from './reach.ts'

test('code ran when the innermost part around it did', () => {
  const spans = [
    [0, 100, 1],
    [10, 50, 2],
    [20, 30, 0],
  ] as const
  const ran = (position: number) =>
    hasRun(
      spans.map(([...span]) => span),
      position,
    )
  expect([ran(5), ran(10), ran(20), ran(29), ran(30), ran(100)]).toEqual([true, true, false, false, true, false])
  expect(
    hasRun(
      [
        [20, 30, 0],
        [20, 30, 1],
      ],
      25,
    ),
  ).toBe(true)
})

const mutant = (position: number): Mutant => ({
  path: 'src/a/rule.store.ts',
  start: 0,
  end: 1,
  replacement: '',
  runsAt: [position],
})
const tests = [
  { id: '1', file: '/copy/test/whole.slow.test.ts', durationMs: 1 },
  { id: '2', file: '/copy/src/a/other.test.ts', durationMs: 9 },
  { id: '3', file: '/copy/src/a/rule.test.ts', durationMs: 50 },
]
const reached = tests.map(({ id, file }) => ({
  file,
  shared: id === '1' ? { 'src/a/rule.store.ts': [[40, 50, 1] as [number, number, number]] } : {},
  tests: { [id]: { 'src/a/rule.store.ts': [[10, 20, 1] as [number, number, number]] } },
}))
const findIds = (position: number, path = 'src/a/rule.store.ts') =>
  buildReach(tests, reached, () => ['src/b/bound.ts', 'src/a/rule.store.ts', 'src/a/other.test.ts'])
    .findTests({ ...mutant(position), path })
    .map(({ id }) => id)

test('the tests that run the code judge it, those beside it first and slow ones last', () => {
  expect(findIds(15)).toEqual(['3', '2', '1'])
})

test('the tests of its folder judge a constant too that other files use', () => {
  const constant = { ...mutant(45), isUsedElsewhere: true }
  expect(
    buildReach(tests, reached, () => [])
      .findTests(constant)
      .map(({ id }) => id),
  ).toEqual(['3', '2', '1'])
})

const more = Array.from({ length: 5 }, (_, n) => ({
  id: `of-${n}`,
  file: '/copy/test/whole.slow.test.ts',
  durationMs: 2 + n,
}))

test('what the hooks of a file run is reached by its tests, and by those of the folder: its module may be loaded there', () => {
  expect(findIds(45)).toEqual(['3', '2', '1'])
  const found = buildReach([...tests, ...more], reached, () => []).findTests(mutant(45))
  expect(found.map(({ id }) => id)).toEqual(['3', '2', '1', ...more.map(({ id }) => id)])
})

test('what few tests ran is judged by the tests of the folder, too; what more tests ran, by these alone', () => {
  const ran = { 'src/a/rule.store.ts': [[60, 65, 1] as [number, number, number]] }
  const findOf = (those: typeof more) =>
    buildReach(
      [...tests, ...those],
      [{ file: more[0]!.file, shared: {}, tests: Object.fromEntries(those.map(({ id }) => [id, ran])) }],
      () => [],
    )
      .findTests(mutant(62))
      .map(({ id }) => id)
  expect(findOf(more)).toEqual(['3', '2', ...more.map(({ id }) => id)])
  const all = [...more, { ...more[0]!, id: 'of-5', durationMs: 9 }]
  expect(findOf(all)).toEqual(all.map(({ id }) => id))
})

test('code that no test runs is judged by the tests of its folder: it may run when its module is loaded', () => {
  expect(findIds(70)).toEqual(['3', '2'])
})

test('where that folder has no tests, those whose file loads the module judge it', () => {
  expect(findIds(70, 'src/b/bound.ts')).toEqual(['2'])
})

test('the tests beside a file are the nearest, then those that are named, then those of its folder that load it, then the others that do; slow ones later, strangers never', () => {
  const files = [
    'test/far.test.ts',
    'src/b/user.slow.test.ts',
    'src/b/user.test.ts',
    'src/a/other.test.ts',
    'src/a/rule-run.slow.test.ts',
    'src/a/rule.test.ts',
    'src/a/whole.slow.test.ts',
    'src/c/stranger.test.ts',
  ]
  const importers = [
    ...['src/a/rule.store.ts', 'src/a/rule.test.ts', 'src/a/rule-run.slow.test.ts', 'src/b/user.ts'],
    ...['src/b/user.slow.test.ts', 'src/b/user.test.ts', 'src/a/whole.slow.test.ts', 'src/app.ts', 'test/far.test.ts'],
  ]
  expect(rankTestFiles('src/a/rule.store.ts', files, { importers, named: ['src/c/stranger.test.ts'] })).toContain(
    'src/c/stranger.test.ts',
  )
  const named = ['test/far.test.ts']
  expect(rankTestFiles('src/a/rule.store.ts', files, { importers, named })).toEqual([
    'src/a/rule.test.ts',
    'src/a/rule-run.slow.test.ts',
    'test/far.test.ts',
    'src/a/whole.slow.test.ts',
    'src/b/user.test.ts',
    'src/b/user.slow.test.ts',
    'src/a/other.test.ts',
  ])
})

test('each file of tests that is named to judge first exists, for a place that exists', () => {
  const root = join(import.meta.dirname, '..', '..')
  expect(NEAREST.flatMap(([, files]) => files).filter((file) => !existsSync(join(root, file)))).toEqual([])
  expect(NEAREST.filter(([prefix]) => globSync(`${prefix}*`, { cwd: root }).length === 0)).toEqual([])
})
