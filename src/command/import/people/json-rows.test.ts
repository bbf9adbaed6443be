import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ExportForm, type JsonRow, readJsonRows } from './json-rows.ts'

async function* cut(text: string, length: number): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += length) yield text.slice(at, at + length)
}
async function read(text: string, form: ExportForm = 'rows', length = 7): Promise<JsonRow[]> {
  const rows: JsonRow[] = []
  for await (const row of readJsonRows(cut(text, length), form)) rows.push(row)
  return rows
}

describe('rows of an export file', () => {
  test.each([
    ['lines', '{"a":1}\n{"a":"}\\""}\r\n\n{"a":[1,{"b":[]}]}'],
    ['a list', '\ufeff [ {"a":1}, {"a":"}\\""},{"a":[1,{"b":[]}]} ] '],
  ])('are read from %s', async (_name, text) => {
    const values = [{ a: 1 }, { a: '}"' }, { a: [1, { b: [] }] }]
    expect(await read(text)).toEqual(values.map((value) => ({ member: null, value })))
  })

  test('of a document are those of its lists, and its other members', async () => {
    const text =
      '{"realm":"a","on":true,"users":[{"id":"1"},{"id":"2"}],"none":null,"count":12,"more":{"x":[1]},"empty":[]}'
    expect(await read(text, 'document')).toEqual([
      { member: 'realm', value: 'a' },
      { member: 'on', value: true },
      { member: 'users', value: { id: '1' } },
      { member: 'users', value: { id: '2' } },
      { member: 'none', value: null },
      { member: 'count', value: 12 },
      { member: 'more', value: { x: [1] } },
    ])
  })

  test('are the same however the file is cut', async () => {
    const json = fc.array(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 4 })), { minLength: 1, maxLength: 5 })
    await fc.assert(
      fc.asyncProperty(json, fc.integer({ min: 1, max: 40 }), async (rows, length) => {
        const lines = rows.map((row) => JSON.stringify(row)).join('\n')
        const values = rows.map((row) => ({ member: null, value: JSON.parse(JSON.stringify(row)) }))
        expect(await read(lines, 'rows', length)).toEqual(values)
        expect(await read(JSON.stringify(rows, null, 2), 'rows', length)).toEqual(values)
        const inDocument = await read(JSON.stringify({ users: rows }), 'document', length)
        expect(inDocument).toEqual(values.map(({ value }) => ({ member: 'users', value })))
      }),
    )
  })

  test.each<[string, string, ExportForm, RegExp]>([
    ['ends in a row', '{"a":1}\n{"a":', 'rows', /ends in the middle after 1 rows/],
    ['ends in a list', '[{"a":1},', 'rows', /ends in the middle after 1 rows/],
    ['ends in a document', '{"users":[{"id":"1"}]', 'document', /ends in the middle/],
    ['is empty', ' \n', 'rows', /is empty/],
    ['is not JSON', 'create table users', 'rows', /not a JSON object/],
    ['is a list where a document is due', '[{}]', 'document', /not a JSON object/],
    ['has a broken row', '{"secret":tru}', 'rows', /has a row that is not JSON/],
    ['goes on', '{"users":[]} {', 'document', /continues after its end/],
    ['is a megabyte of nonsense', 'x'.repeat(1 << 20), 'rows', /not a JSON object/],
    ['is a megabyte of braces', '{'.repeat(1 << 20), 'rows', /nested deeper than 64/],
    ['is a megabyte of brackets', `[${'['.repeat(1 << 20)}`, 'rows', /nested deeper than 64/],
    ['has a row without an end', `{"a":"${'\\"'.repeat(3 << 20)}`, 'rows', /more than 4 Mi characters/],
  ])('a file is refused that %s, and no error has a part of it', async (_name, text, form, message) => {
    const error = await read(text, form, 65_536).catch((caught: Error) => caught)
    expect((error as Error).message).toMatch(message)
    expect((error as Error).message).not.toMatch(/secret|create table/)
  })
})
