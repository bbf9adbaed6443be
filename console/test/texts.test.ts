import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const read = async (folder: string, language: string) =>
  JSON.parse(await readFile(new URL(`../src/${folder}/${language}.json`, import.meta.url), 'utf8')) as Record<
    string,
    string
  >

const placesOf = (text: string) => [...text.matchAll(/\{\{(\w+)\}\}/g)].map(([, name]) => name).sort()

test.each(['language', 'portal/language'])(
  'the German texts of %s are whole, and hold what the English ones hold',
  async (folder) => {
    const [english, german] = [await read(folder, 'en'), await read(folder, 'de')]
    expect(Object.keys(german)).toEqual(Object.keys(english))
    for (const [key, text] of Object.entries(english)) {
      expect(text.trim(), key).not.toBe('')
      expect(german[key]?.trim(), key).not.toBe('')
      expect(placesOf(german[key] ?? ''), key).toEqual(placesOf(text))
    }
  },
)
