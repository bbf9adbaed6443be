import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { TOLD_BY_MESSAGE } from '../console/src/parts/refusal/field-text.ts'
import { FIELD_ERRORS } from '../src/http/problem/field-error.ts'
import { PROBLEMS, Problem } from '../src/http/problem/problem.ts'
import { REQUEST_FORMATS } from '../src/http/shape/formats.ts'
import { readHeaders } from '../src/webhook/registry/own-headers.ts'

type Texts = Readonly<Record<string, string>>

const read = async (path: string) => await readFile(new URL(`../${path}`, import.meta.url), 'utf8')
const readTexts = async (language: string) =>
  JSON.parse(await read(`console/src/language/refusals-${language}.json`)) as Texts

const LANGUAGES = [
  ['en', await readTexts('en')],
  ['de', await readTexts('de')],
] as const

const CODES = Object.keys(FIELD_ERRORS)
const paramsOf = (code: string): readonly string[] => FIELD_ERRORS[code as keyof typeof FIELD_ERRORS]
const placesOf = (text: string) => [...text.matchAll(/\{\{(\w+)\}\}/g)].map(([, name]) => name ?? '').sort()

/** The rest of each key of `texts` after `prefix`. */
const keysAfter = (texts: Texts, prefix: string) =>
  Object.keys(texts).flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length)] : []))

/** The pattern of a rule of ours that is no schema. */
function findHeaderPattern(): string | undefined {
  try {
    readHeaders({ 'no token': 'x' })
  } catch (error) {
    return error instanceof Problem ? error.errors?.[0]?.params?.pattern : undefined
  }
  return undefined
}

describe.each(LANGUAGES)('the sentences of the console in %s', (_language, texts) => {
  test('are there for each code of a field, without a place, so that each entry has one', () => {
    const bare = keysAfter(texts, 'field.').filter((key) => !key.includes('.'))
    expect(bare.toSorted()).toEqual(CODES.toSorted())
    for (const code of CODES) {
      expect(texts[`field.${code}`], code).toMatch(/^[A-ZÄÖÜ].*\.$/)
      expect(placesOf(texts[`field.${code}`] ?? ''), code).toEqual([])
    }
  })

  test('of a code with params name members that the code has, and no other place', () => {
    for (const key of keysAfter(texts, 'field.').filter((name) => name.includes('.'))) {
      const [code = '', members = ''] = key.split('.')
      const named = members === 'one' ? ['limit'] : members.split('+')
      expect(paramsOf(code), key).toEqual(expect.arrayContaining(named))
      expect(placesOf(texts[`field.${key}`] ?? ''), key).toEqual(members === 'one' ? [] : named)
    }
  })

  test('name the formats and the types of requests, and patterns that a rule has', async () => {
    expect(keysAfter(texts, 'format.').toSorted()).toEqual(Object.keys(REQUEST_FORMATS).toSorted())
    const openApi = await read('openapi.json')
    for (const pattern of keysAfter(texts, 'pattern.'))
      expect(
        pattern === findHeaderPattern() || openApi.includes(`"pattern": ${JSON.stringify(pattern)}`),
        pattern,
      ).toBe(true)
  })
})

test('the sentences have the same keys in both languages; those of problems are in German alone', () => {
  const [english, german] = LANGUAGES.map(([, texts]) => Object.keys(texts).sort())
  const ofProblems = Object.keys(PROBLEMS).map((code) => `problem.${code}`)
  expect(german).toEqual([...(english ?? []), ...ofProblems].sort())
})

test('the codes that an English message tells better are codes', () => {
  expect(CODES).toEqual(expect.arrayContaining([...TOLD_BY_MESSAGE]))
})
