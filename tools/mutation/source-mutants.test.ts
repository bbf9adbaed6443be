import { expect, test } from 'vitest'
import { applyMutant, nameMutant } from './mutant.ts'
import { listMutants } from './source-mutants.ts'

const changesOf = (text: string, path = 'src/a/a.ts') =>
  listMutants(path, text).map((mutant) => nameMutant(mutant, text).change)

test.each<[string, string, string[]]>([
  ['bounds and equality', 'const f = (a) => [a < 1, a >= 1, a === 1]', ['< -> <=', '>= -> >', '=== -> !==']],
  ['a condition', 'if (a === 1) b = 2', ['a === 1 -> true', 'a === 1 -> false', 'b = 2 -> ;']],
  ['operands', 'const c = a && !b', ['a -> true', '!b -> true']],
  ['operands of a condition', 'const d = a || b ? 1 : 2', ['a -> false', 'a || b -> true', 'b -> false']],
  ['a default', 'const d = a ?? b', ['a ?? b -> (b)', 'a ?? b -> (a)']],
  ['a default that stands for nothing', 'const d = a ?? null', ['a ?? null -> (null)']],
  ['constants and signs', 'const d = [true, !a, b - 1, 2 * c]', ['true -> false', '!a -> a', '- -> +', '* -> /']],
  ['calls', 'await work(a)\nlogger.warn({ a: true }, "b")\ndeps.onRouterPoint?.("c")', ['await work(a) -> ;']],
  ['the other end', 'const d = Math.min(a, b.filter(c))', ['min -> max', '.filter(c) -> (nothing)']],
  ['members that are left out', 'const d = { ...(a && { b }) }', ['a -> true', '{ b } -> true']],
  ['members that are not given', 'const d = { ...(a !== undefined && { a }) }', ['{ a } -> true']],
  ['no types, errors and texts', 'type A = true\nthrow new Error(a ?? b)\nconst d = a + "b"', []],
])('%s', (_name, text, changes) => {
  expect(changesOf(text)).toEqual(changes)
})

/** A call in a template, as it is written there. */
const CALL = '$' + '{x(1)}'

test('statements are changed where they stand, in templates with parts of others too', () => {
  const text = [
    'const PART = `a < b`',
    `const find = statement(\`select 1 from $\{T} where c = ${CALL} for update\`)`,
  ].join('\n')
  expect(changesOf(text)).toEqual([`c = ${CALL} -> true`, 'for update -> (nothing)'])
  expect(changesOf(text, 'src/a/a.store.ts')).toEqual([`c = ${CALL} -> true`, 'for update -> (nothing)'])
  expect(changesOf("db.updateTable('a').set({ b: 1, c: 2 }).where('d', '=', e)", 'src/a/a.store.ts')).toEqual([
    "db.updateTable('a').set({ b: 1, c: 2 }).where('d', '=', e) -> ;",
    'b: 1, -> (nothing)',
    'c: 2 -> (nothing)',
    ".where('d', '=', e) -> (nothing)",
  ])
})

test('a change outside of functions runs where those functions run that use it, by way of others too', () => {
  const lines = [
    'const LIMIT = a > 1',
    'const statementOf = build(LIMIT)',
    'export function find(db) {',
    '  return statementOf(db)',
    '}',
    'export function other() {}',
  ]
  const text = lines.join('\n')
  const [mutant] = listMutants('src/a/a.ts', text)
  expect(mutant?.runsAt.map((position) => text.slice(0, position).split('\n').at(-1))).toEqual([
    'export function find(db) {',
  ])
  expect(mutant?.isUsedElsewhere).toBe(false)
  expect(applyMutant(mutant!, text)).toBe(text.replace('a > 1', 'a >= 1'))
})

test('a constant that is exported, or that one is made of, is used in other files too; a function that is exported is not', () => {
  const isUsedElsewhere = (text: string) => listMutants('src/a/a.ts', text)[0]?.isUsedElsewhere
  expect(isUsedElsewhere('export const LIMIT = a > 1')).toBe(true)
  expect(isUsedElsewhere('const LIMIT = a > 1\nexport const find = build(LIMIT)')).toBe(true)
  expect(isUsedElsewhere('const LIMIT = a > 1\nexport const find = () => LIMIT')).toBe(false)
  expect(isUsedElsewhere('export const isMore = (a) => a > 1')).toBeUndefined()
})
