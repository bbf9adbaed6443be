import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../test/harness/run/any-text.ts'
import { expectLinear } from '../../../test/harness/run/linear.ts'
import { type ExportedRow, formatCell, formatExport } from './export-format.ts'

describe('a cell of CSV', () => {
  test.each([
    [null, ''],
    [undefined, ''],
    ['', ''],
    [0, '0'],
    [-1, '-1'],
    [true, 'true'],
    ['plain', 'plain'],
    ['a,b', '"a,b"'],
    ['say "hi"', '"say ""hi"""'],
    ['two\nlines', '"two\nlines"'],
    ['two\r\nlines', '"two\r\nlines"'],
    ['=1+1', "'=1+1"],
    ['+1', "'+1"],
    ['-1', "'-1"],
    ['@cmd', "'@cmd"],
    ['\t=1', `"'\t'=1"`],
    ['\r=1', `"'\r'=1"`],
    ['\n=1', `"'\n'=1"`],
    ['a;b', '"a;b"'],
    ['a;=1+1', `"a;'=1+1"`],
    ['a; "=1', `"a; ""'=1"`],
    ['a;;@cmd;-1', `"a;;'@cmd;'-1"`],
    ['a\n=1;+2', `"a\n'=1;'+2"`],
    ['a|=1', `"a|'=1"`],
    ['a;＝1', `"a;'＝1"`],
    ['https://a.test/?x=1;y=2', '"https://a.test/?x=1;y=2"'],
    ['＝1+1', "'＝1+1"],
    ['＋1', "'＋1"],
    ['－1', "'－1"],
    ['＠cmd', "'＠cmd"],
    ['=1,"2"', `"'=1,""2"""`],
    ['a=1', 'a=1'],
    ["'=1", "'=1"],
  ])('%j is written as %j', (value, written) => {
    expect(formatCell(value)).toBe(written)
  })
})

async function* inBatches(rows: readonly ExportedRow[], size: number) {
  for (let at = 0; at < rows.length; at += size) yield rows.slice(at, at + size)
}

async function write(format: Parameters<typeof formatExport>[0], rows: readonly ExportedRow[], size = 2) {
  let text = ''
  for await (const piece of formatExport(format, ['name', 'count', 'note'], inBatches(rows, size))) text += piece
  return text
}

/** Reads CSV as RFC 4180 says, and nothing more lenient. */
function readCsv(text: string): string[][] {
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/y
  const records: string[][] = []
  let record: string[] = []
  while (cell.lastIndex < text.length) {
    const match = cell.exec(text)
    if (!match) throw new Error('this is no RFC 4180')
    record.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '')
    if (match[3] === ',') continue
    records.push(record)
    record = []
  }
  return records
}

const anyRow = fc.record({
  name: fc.string({ unit: anyCharacter }),
  count: fc.integer(),
  note: fc.oneof(fc.constant(null), fc.string(), fc.constantFrom('=a', 'a,b', '"', '\r\n', '@', '-')),
})

test('in a program that separates by semicolons no cell begins with a formula, wherever the text stands', () => {
  const piece = fc.constantFrom(';', '=1', '+', '-', '@', '"', "'", ' ', '\t', '\n', '\r', 'a', ',', '＝')
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      // Behind another cell quotation marks separate nothing.
      const line = `id,${formatCell(pieces.join(''))}`
      const cells = line.split(/[;\r\n]/).map((cell) => cell.replace(/^[\s"]+/, ''))
      for (const cell of cells) expect(cell).not.toMatch(/^[=+\-@＝]/)
    }),
  )
})

// The engine reads a text with an emoji in another way, which skips less.
test.each(['\n', '"', ' ', ';', '\n"', "' ", ';=', '"='])('a long row of %j is written in linear time', (pump) => {
  for (const [before, after] of ['', ';', '😀'].flatMap((text) => ['', '=', 'a='].map((other) => [text, other])))
    expectLinear((size) => `${before}${pump.repeat(size / pump.length)}${after}`, formatCell)
})

describe('an export', () => {
  test.each([
    ['csv', 'name,count,note\r\n'],
    ['json', '[]\n'],
    ['ndjson', ''],
  ] as const)('of no row in %s is valid', async (format, text) => {
    expect(await write(format, [])).toBe(text)
  })

  test('has the columns in one order and says null for what is missing', async () => {
    const rows = [
      { note: 'x', name: 'a', count: 1 },
      { name: 'b', count: 2 },
    ]
    expect(await write('csv', rows as ExportedRow[])).toBe('name,count,note\r\na,1,x\r\nb,2,\r\n')
    expect(await write('ndjson', rows as ExportedRow[])).toBe(
      '{"name":"a","count":1,"note":"x"}\n{"name":"b","count":2,"note":null}\n',
    )
    expect(await write('json', rows as ExportedRow[])).toBe(
      '[\n{"name":"a","count":1,"note":"x"},\n{"name":"b","count":2,"note":null}\n]\n',
    )
  })

  test('has a list as its JSON, one cell in CSV', async () => {
    const rows = [{ name: 'a', count: 1, note: ['=1', 'b;=2'] }]
    expect(await write('csv', rows)).toBe(`name,count,note\r\na,1,"[""=1"",""b;'=2""]"\r\n`)
    expect(await write('ndjson', rows)).toBe('{"name":"a","count":1,"note":["=1","b;=2"]}\n')
  })

  test('in any form, whatever the texts and the batches, is read back as what was written', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyRow, { maxLength: 7 }), fc.integer({ min: 1, max: 8 }), async (rows, size) => {
        expect(JSON.parse(await write('json', rows, size))).toEqual(rows)
        const lines = (await write('ndjson', rows, size)).split('\n').slice(0, -1)
        expect(lines.map((line) => JSON.parse(line))).toEqual(rows)
        const [header, ...records] = readCsv(await write('csv', rows, size))
        expect(header).toEqual(['name', 'count', 'note'])
        const plain = (value: string) => value.replace(/^'|'+(?=[=+\-@＝＋－＠])/g, '')
        const said = (value: string | null) => plain(value ?? '')
        expect(records.map(([name = '', count, note = '']) => [plain(name), count, plain(note)])).toEqual(
          rows.map(({ name, count, note }) => [said(name), String(count), said(note)]),
        )
      }),
    )
  })

  test('as CSV never holds a text cell that a spreadsheet would run', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyRow, { maxLength: 5 }), async (rows) => {
        for (const [name = '', , note = ''] of readCsv(await write('csv', rows)).slice(1))
          for (const cell of [name, note]) expect(cell).not.toMatch(/^[=+\-@\t\r\n＝＋－＠]/)
      }),
    )
  })
})
