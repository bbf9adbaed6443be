import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const read = async (language: string) =>
  JSON.parse(await readFile(new URL(`../src/language/${language}.json`, import.meta.url), 'utf8')) as Record<
    string,
    string
  >

const placesOf = (text: string) => [...text.matchAll(/\{\{(\w+)\}\}/g)].map(([, name]) => name).sort()

test('the German texts are whole, and hold what the English ones hold', async () => {
  const [english, german] = [await read('en'), await read('de')]
  expect(Object.keys(german)).toEqual(Object.keys(english))
  for (const [key, text] of Object.entries(english)) {
    expect(text.trim(), key).not.toBe('')
    expect(german[key]?.trim(), key).not.toBe('')
    expect(placesOf(german[key] ?? ''), key).toEqual(placesOf(text))
  }
})
