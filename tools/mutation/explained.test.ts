import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXPLAINED } from './explained.ts'
import { nameMutant } from './mutant.ts'
import { listMutants } from './source-mutants.ts'

test('each explained survivor is still a change that the tool makes, once explained, with a reason', () => {
  const texts = new Map(
    [...new Set(EXPLAINED.map(({ path }) => path))].map((path) => [
      path,
      readFileSync(join(import.meta.dirname, '..', '..', path), 'utf8'),
    ]),
  )
  const known = [...texts].flatMap(([path, text]) => listMutants(path, text).map((mutant) => nameMutant(mutant, text)))
  const nameOf = (mutation: { path: string; lineText: string; change: string }) =>
    `${mutation.path} | ${mutation.lineText} | ${mutation.change}`
  const names = EXPLAINED.map(nameOf)
  expect(names.filter((name) => !known.some((mutant) => nameOf(mutant) === name))).toEqual([])
  expect(new Set(names).size).toBe(names.length)
  expect(EXPLAINED.filter(({ reason }) => reason.length < 20)).toEqual([])
})
