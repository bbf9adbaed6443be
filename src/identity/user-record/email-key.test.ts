import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { foldEmail } from './email-key.ts'

const database = await openForFile(createTestDatabase())

const readKeys = async (addresses: readonly string[]) =>
  (
    await database.pool.query<{ key: string }>(
      'select email_key(a.address) as key from unnest($1::text[]) with ordinality a (address, position) order by position',
      [addresses],
    )
  ).rows.map(({ key }) => key)

describe('the key of an e-mail address', () => {
  test.each([
    ['letters A to Z', 'Kim.STRASSE@Example.COM', 'kim.strasse@example.com'],
    ['a dotted capital I', '\u0130ris@example.com', '\u0130ris@example.com'],
    ['a dotless small i', '\u0131ris@example.com', '\u0131ris@example.com'],
    ['the sign of Kelvin', '\u212aim@example.com', '\u212aim@example.com'],
    ['a long s', 'bo\u017fs@example.com', 'bo\u017fs@example.com'],
    ['a sharp s, small and capital', 'stra\u00dfe\u1e9e@example.com', 'stra\u00dfe\u1e9e@example.com'],
    ['full-width letters', '\uff21@example.com', '\uff21@example.com'],
    ['a ligature', '\ufb01n@example.com', '\ufb01n@example.com'],
    ['combining marks', 'I\u0307ris\u0301@example.com', 'i\u0307ris\u0301@example.com'],
    ['a final sigma', '\u03a3\u03a3@example.com', '\u03a3\u03a3@example.com'],
    ['letters outside the basic plane', '\u{10400}@example.com', '\u{10400}@example.com'],
  ])('of %s is the same here and in the database', async (_, address, key) => {
    expect(foldEmail(address)).toBe(key)
    expect(await readKeys([address])).toEqual([key])
  })

  test('is the same here and in the database for any text', async () => {
    const text = fc.string({ unit: 'binary' }).map((text) => text.toWellFormed().replaceAll('\0', ''))
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 50 }), async (addresses) => {
        expect(await readKeys(addresses)).toEqual(addresses.map(foldEmail))
      }),
      { numRuns: 50 },
    )
  })

  test('leaves an address longer than any as linear work', () => {
    const before = process.threadCpuUsage()
    foldEmail('Aa'.repeat(1_048_576))
    const { user, system } = process.threadCpuUsage(before)
    expect((user + system) / 1_000).toBeLessThan(1_000)
  })
})
