import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { writeArray } from './array.ts'

const database = await openForFile(createTestDatabase())

/** Values as PostgreSQL reads them. */
async function readBack(type: string, values: readonly unknown[]): Promise<unknown> {
  const { rows } = await database.pool.query(`select $1::${type}[] as read`, [writeArray(values)])
  return rows[0].read
}

describe('an array as a parameter', () => {
  test('gives every text back, whatever it holds, and null', async () => {
    const text = fc.string({ unit: anyCharacter, maxLength: 20 }).filter((text) => !text.includes('\0'))
    const special = fc.constantFrom('', 'NULL', 'null', '{', '}', ',', '"', '\\', ' ', '\n', "'", '{"a":"b\\"c"}')
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(text, special, fc.constant(null)), { maxLength: 8 }), async (values) => {
        expect(await readBack('text', values)).toEqual(values)
      }),
      { numRuns: 60 },
    )
  })

  test('gives numbers, booleans and instants back', async () => {
    expect(await readBack('int', [1, -2, null, 0])).toEqual([1, -2, null, 0])
    expect(await readBack('boolean', [true, false, null])).toEqual([true, false, null])
    const instants = [new Date('2026-11-21T10:00:00.123Z'), null, new Date('1970-01-01T00:00:00Z')]
    expect(await readBack('timestamptz', instants)).toEqual(instants)
  })

  test('leaves arrays of anything else to the driver', () => {
    expect([writeArray([[1]]), writeArray([Buffer.from('a')]), writeArray([{}]), writeArray([undefined])]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ])
  })
})
