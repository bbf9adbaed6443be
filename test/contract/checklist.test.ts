import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { FACTS } from './facts.ts'

const FOLDERS = [import.meta.dirname, join(import.meta.dirname, '..', 'journeys')]

/** A fact in a title: a section with a number, or a rule of docs/contract (`delivery#retry-timing`). */
const FACT = /^(?:[a-z-]+#[a-z-]+|[A-Z][A-Za-z ]* \d+)$/

/** The titles of all cases of these folders. */
async function readTitles(): Promise<{ file: string; title: string }[]> {
  const titles: { file: string; title: string }[] = []
  for (const folder of FOLDERS) {
    for (const file of (await readdir(folder)).filter((name) => name.endsWith('.test.ts'))) {
      const text = await readFile(join(folder, file), 'utf8')
      for (const match of text.matchAll(/^\s*(?:it|test)\(\s*(['`"])((?:\\.|(?!\1)[^\\])*)\1/gm))
        titles.push({ file: `${basename(folder)}/${file}`, title: match[2] ?? '' })
    }
  }
  return titles
}

/** The facts at the beginning of a title. */
function readFacts(title: string): string[] {
  const named = title.slice(0, title.indexOf(': ')).split(', ')
  return named.every((one) => FACT.test(one)) ? named : []
}

const cases = (await readTitles()).filter(({ file }) => file !== 'contract/checklist.test.ts')

test('every fact of the contract has a case', () => {
  const proved = new Set(cases.flatMap(({ title }) => readFacts(title)))
  expect(Object.keys(FACTS).filter((fact) => !proved.has(fact))).toEqual([])
})

test('every fact of a case is on the list', () => {
  const unknown = cases.flatMap(({ file, title }) =>
    readFacts(title).flatMap((fact) => (fact in FACTS ? [] : [`${file}: ${fact}`])),
  )
  expect(unknown).toEqual([])
})

test('every case of the contract has a fact, and no title repeats in a file', () => {
  const silent = cases.filter(({ file, title }) => file.startsWith('contract/') && readFacts(title).length === 0)
  expect(silent).toEqual([])
  const seen = cases.map(({ file, title }) => `${file}: ${title}`)
  expect(seen.filter((one, at) => seen.indexOf(one) !== at)).toEqual([])
  expect(seen.length).toBeGreaterThan(200)
})
