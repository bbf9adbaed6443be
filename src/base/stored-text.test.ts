import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../test/harness/database/database.ts'
import { anyCharacter } from '../../test/harness/run/any-text.ts'
import { isStorableText } from './stored-text.ts'

test.each([
  ['', true],
  ['Grüße, 👩‍🚀', true],
  ['\u0001\u001f\uffff', true],
  ['a\u0000b', false],
  ['\ud83d', false],
  ['\ude00\ud83d', false],
])('%j is stored as it is: %s', (text, expected) => {
  expect(isStorableText(text)).toBe(expected)
})

test('text that passes comes back from PostgreSQL as it was, and text that does not would be refused or altered', async () => {
  await using database = await createTestDatabase()
  const text = fc.string({
    unit: fc.oneof(fc.constantFrom('\u0000', '\ud83d', '\ude00', 'é'), anyCharacter),
  })
  await fc.assert(
    fc.asyncProperty(text, async (given) => {
      const read = await database.pool.query<{ value: string }>('select $1::text as value', [given]).then(
        ({ rows }) => rows[0]?.value,
        () => undefined,
      )
      expect(read === given).toBe(isStorableText(given))
    }),
  )
})
