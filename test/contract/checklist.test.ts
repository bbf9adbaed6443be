import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { PROJECT_ROOT } from '../harness/process/process.ts'
import { listHeadings, slugOf } from '../tidy/markdown.ts'
import { RULES } from './rules.ts'

const FOLDERS = [import.meta.dirname, join(import.meta.dirname, '..', 'journeys')]

/** A rule in a title: a page of docs/contract and an anchor, such as `delivery#retry-timing`. */
const RULE = /^[a-z-]+#[a-z-]+$/

const listed = Object.entries(RULES).flatMap(([page, anchors]) => anchors.map((anchor) => `${page}#${anchor}`))

/** The titles of all cases of these folders. */
async function readTitles(): Promise<{ file: string; title: string }[]> {
  const titles: { file: string; title: string }[] = []
  for (const folder of FOLDERS) {
    for (const file of (await readdir(folder)).filter((name) => name.endsWith('.test.ts'))) {
      const text = await readFile(join(folder, file), 'utf8')
      for (const match of text.matchAll(/^\s*test\(\s*(['`"])((?:\\.|(?!\1)[^\\])*)\1/gm))
        titles.push({ file: `${basename(folder)}/${file}`, title: match[2] ?? '' })
    }
  }
  return titles
}

/** The rules at the beginning of a title. */
function readRules(title: string): string[] {
  const named = title.slice(0, title.indexOf(': ')).split(', ')
  return named.every((name) => RULE.test(name)) ? named : []
}

const cases = (await readTitles()).filter(({ file }) => file !== 'contract/checklist.test.ts')

test('every listed rule is a heading of docs/contract', async () => {
  for (const [page, anchors] of Object.entries(RULES)) {
    const text = await readFile(join(PROJECT_ROOT, 'docs/contract', `${page}.md`), 'utf8')
    const headings = listHeadings(text).map(({ title }) => slugOf(title))
    expect(anchors.filter((anchor) => !headings.includes(anchor))).toEqual([])
  }
})

test('every listed rule has a case', () => {
  const proved = new Set(cases.flatMap(({ title }) => readRules(title)))
  expect(listed.filter((rule) => !proved.has(rule))).toEqual([])
})

test('every rule of a case is listed', () => {
  const unknown = cases.flatMap(({ file, title }) =>
    readRules(title).flatMap((rule) => (listed.includes(rule) ? [] : [`${file}: ${rule}`])),
  )
  expect(unknown).toEqual([])
})

test('every case of the contract names a rule, and no title repeats in a file', () => {
  const silent = cases.filter(({ file, title }) => file.startsWith('contract/') && readRules(title).length === 0)
  expect(silent).toEqual([])
  const seen = cases.map(({ file, title }) => `${file}: ${title}`)
  expect(seen.filter((title, index) => seen.indexOf(title) !== index)).toEqual([])
  expect(seen.length).toBeGreaterThan(200)
})
