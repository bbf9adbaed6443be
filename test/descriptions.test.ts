import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { SYSTEM_ROLES } from '../src/identity/access/system-roles.ts'

const read = async (path: string): Promise<unknown> =>
  JSON.parse(await readFile(new URL(`../${path}`, import.meta.url), 'utf8'))

test('each event type and each role of the service has a German description, and nothing else has one', async () => {
  const types = (await read('catalogue.json')) as { internal: string }[]
  const texts = (await read('console/src/language/descriptions-de.json')) as Record<string, string>
  const declared = [
    ...types.map(({ internal }) => `event.${internal}`),
    ...SYSTEM_ROLES.map(({ name }) => `role.${name}`),
  ]
  expect(Object.keys(texts)).toEqual(declared.toSorted())
  for (const [key, text] of Object.entries(texts)) expect(text, key).toMatch(/^[A-ZÄÖÜ]\S*( \S+)*$/)
})
