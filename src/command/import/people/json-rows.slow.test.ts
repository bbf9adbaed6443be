import { expect, test } from 'vitest'
import { type ExportForm, readJsonRows } from './json-rows.ts'

/** A hundred thousand rows of 1.5 KB, made as they are read. */
async function* makeExport(form: ExportForm): AsyncGenerator<string> {
  const tail = JSON.stringify({
    name: 'a'.repeat(1000),
    tags: Array.from({ length: 50 }, (_, at) => `tag ${at}`),
  }).slice(1)
  if (form === 'document') yield '{"realm":"acme","users":['
  for (let at = 0; at < 100_000; at += 1)
    yield `${form === 'document' && at > 0 ? ',' : ''}{"id":"${at}",${tail}${form === 'rows' ? '\n' : ''}`
  if (form === 'document') yield ']}'
}

test.each<ExportForm>(['rows', 'document'])(
  'an export of a hundred thousand %s is read in bounded memory',
  async (form) => {
    const before = process.memoryUsage().rss
    let most = 0
    let count = 0
    for await (const { value } of readJsonRows(makeExport(form), form)) {
      if (typeof value === 'string') continue
      count += 1
      if (count % 1000 === 0) most = Math.max(most, process.memoryUsage().rss - before)
    }
    expect(count).toBe(100_000)
    // The whole export has 150 MB.
    expect(most).toBeLessThan(100 * 1024 * 1024)
  },
  120_000,
)
