import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { type ArchivedDay, FileSummary, fileName, manifestName, parseManifest } from './manifest.ts'
import { planDay } from './plan-day.ts'
import { kindsOf, mayHaveDay, mayHaveFile, readArchive } from './read-archive.ts'
import type { Storage } from './storage/storage.ts'

const DAY: ArchivedDay = {
  ...{
    day: '2026-09-01',
    through: '2026-09-03T00:00:00.000Z',
    since: null,
    is_closed: true,
    position: null,
    files: [],
  },
}

test('a day is written once, again while it is open or a delivery was replayed, and from where it was left', () => {
  const fresh = planDay('2026-09-01', undefined, undefined)
  expect(fresh).toMatchObject({ since: null, through: undefined, isResumed: false, number: 0 })
  expect(fresh?.after.at).toBe('2026-09-01T00:00:00.000Z')
  const file = { file: 'x', rows: 1, bytes: 1, sha256: '', since: null, ids: ['a', 'a'] } as const
  expect(planDay('2026-09-01', { ...DAY, is_closed: false, files: [file, file] }, undefined)?.number).toBe(2)
  expect(planDay('2026-09-01', DAY, undefined)).toBeUndefined()
  expect(planDay('2026-09-01', DAY, new Date('2026-09-02T23:59:59.999Z'))).toBeUndefined()
  const again = { since: DAY.through, through: undefined, isResumed: false }
  expect(planDay('2026-09-01', DAY, new Date(DAY.through))).toMatchObject(again)
  expect(planDay('2026-09-01', { ...DAY, is_closed: false }, undefined)).toMatchObject(again)
  const position = { at: '2026-09-01T10:00:00+00:00', id: randomUUID() }
  expect(planDay('2026-09-01', { ...DAY, position }, undefined)).toMatchObject({
    ...{ since: null, through: DAY.through, after: position, isResumed: true },
  })
})

test('the entry of a file names the range of its ids and its webhooks, unless they are many', () => {
  const summary = new FileSummary()
  const [a, b] = ['0190a5c0-0000-7000-8000-000000000001', '0190a5c0-0000-7000-8000-000000000002']
  summary.add({ document_id: b, event_id: a, webhook: a })
  summary.add({ document_id: a, event_id: b, webhook: a })
  expect(summary.build()).toEqual({ rows: 2, ids: [a, b], event_ids: [a, b], webhooks: [a] })
  const add = (webhook: string) => summary.add({ document_id: a, event_id: a, webhook })
  const named = [a, ...Array.from({ length: 63 }, () => randomUUID())].toSorted()
  for (const webhook of [...named, ...named]) add(webhook)
  expect(summary.build().webhooks).toEqual(named)
  for (const webhook of [b, randomUUID()]) {
    add(webhook)
    expect(summary.build().webhooks).toBeNull()
  }
  const events = new FileSummary()
  events.add({ document_id: a })
  expect(events.build()).toEqual({ rows: 1, ids: [a, a] })
})

test('files that cannot have a row are told by their entry, and days by their bounds', () => {
  const [a, b, c] = [1, 2, 3].map((n) => `0190a5c0-0000-7000-8000-00000000000${n}`) as [string, string, string]
  const file = {
    file: 'x',
    rows: 1,
    bytes: 1,
    sha256: '',
    since: null,
    ids: [a, b],
    event_ids: [b, b],
    webhooks: [a],
  } as const
  expect(mayHaveFile(file, 'deliveries', {})).toBe(true)
  expect(mayHaveFile(file, 'deliveries', { delivery: c })).toBe(false)
  expect(mayHaveFile(file, 'deliveries', { delivery: b, event: a })).toBe(false)
  expect(mayHaveFile(file, 'deliveries', { webhook: b })).toBe(false)
  expect(mayHaveFile({ ...file, webhooks: null }, 'deliveries', { webhook: b })).toBe(true)
  for (const query of [{ delivery: a }, { delivery: b }, { event: b }, { webhook: a, delivery: b, event: b }])
    expect(mayHaveFile(file, 'deliveries', query)).toBe(true)
  expect(mayHaveFile({ ...file, ids: [b, b] }, 'deliveries', { delivery: a })).toBe(false)
  const { event_ids: _ids, webhooks: _webhooks, ...unnamed } = file
  expect(mayHaveFile(unnamed, 'deliveries', { webhook: c, event: c })).toBe(true)
  expect(kindsOf({})).toEqual(['deliveries', 'events'])
  expect([kindsOf({ webhook: a }), kindsOf({ delivery: a })]).toEqual([['deliveries'], ['deliveries']])
  expect(mayHaveFile(file, 'events', { event: a })).toBe(true)
  expect(mayHaveFile(file, 'events', { event: b, webhook: c, delivery: c })).toBe(true)
  expect(mayHaveFile(file, 'events', { event: c })).toBe(false)
  const end = new Date('2026-09-02T00:00:00Z')
  expect(mayHaveDay(DAY, { since: end })).toBe(false)
  expect(mayHaveDay(DAY, { since: new Date(end.getTime() - 1) })).toBe(true)
  expect(mayHaveDay(DAY, { until: new Date('2026-09-01T00:00:00Z') })).toBe(false)
  expect(mayHaveDay(DAY, { until: new Date('2026-09-01T00:00:00.001Z') })).toBe(true)
})

test('a manifest is taken as it was written, and refused with any member of another form', () => {
  const key = { database: 'home', kind: 'deliveries', account: null } as const
  const ids: [string, string] = [randomUUID(), randomUUID()]
  const file = {
    ...{ file: fileName(key, DAY.day, 0), rows: 1, bytes: 2, sha256: 'a'.repeat(64), since: null, ids },
    ...{ event_ids: ids, webhooks: [ids[0]] },
  }
  const position = { at: '2026-09-01T10:00:00+00:00', id: ids[0] }
  const manifest = { format: 1, ...key, days: [{ ...DAY, position, files: [file] }] }
  const name = manifestName(key)
  expect(name).toBe('manifest/deliveries/home/none.json')
  expect(parseManifest(JSON.stringify(manifest), name)).toEqual(manifest)
  const many = { ...manifest, days: [{ ...DAY, files: [file, { ...file, webhooks: null }] }] }
  expect(parseManifest(JSON.stringify(many), name)).toEqual(many)
  const removed = { ...manifest, removed_before: '2026-08-31' }
  expect(parseManifest(JSON.stringify(removed), name)).toEqual(removed)
  const named = (length: number) => {
    const path = 'deliveries/.parquet'.replace('.', `${'x'.repeat(length - 'deliveries/.parquet'.length)}.`)
    return JSON.stringify({ ...manifest, days: [{ ...DAY, files: [{ ...file, file: path }] }] })
  }
  expect(parseManifest(named(256), name).days[0]?.files[0]?.file).toHaveLength(256)
  expect(() => parseManifest(named(257), name)).toThrow(/manifest_invalid/)
  expect(() => parseManifest('{', name)).toThrow(/manifest_invalid/)
  const breakers: [path: string[], value: unknown][] = [
    ...['format', 'database', 'kind', 'account', 'days'].map((member): [string[], unknown] => [[member], 7]),
    ...[7, '2026-08-31T00', 'x2026-08-31'].map((value): [string[], unknown] => [['removed_before'], value]),
    ...Object.keys(DAY).map((member): [string[], unknown] => [['days', '0', member], 7]),
    ...['at', 'id'].map((member): [string[], unknown] => [['days', '0', 'position', member], 'x']),
    ...Object.keys(file).map((member): [string[], unknown] => [['days', '0', 'files', '0', member], { x: 1 }]),
    [['days', '0', 'files', '0', 'file'], 'deliveries/../../etc/0.parquet'],
    [['days', '0', 'files', '0', 'rows'], -1],
    [
      ['days', '0', 'files', '0', 'ids'],
      [ids[0], 'x'],
    ],
    [['days', '0', 'files', '0', 'ids'], 'ab'],
    [['days', '0', 'files', '0', 'event_ids'], [ids[0]]],
    [
      ['days', '0', 'files', '0', 'webhooks'],
      [ids[0], 'x'],
    ],
    [['days', '0', 'files', '0'], null],
    [['days', '0', 'files', '1'], {}],
    [['days', '0', 'position'], undefined],
    [['days', '0'], null],
    [['days', '1'], {}],
  ]
  for (const [path, value] of breakers) {
    const broken = structuredClone(manifest)
    const last = path.pop() as string
    const holder = path.reduce<Record<string, unknown>>((at, part) => at[part] as Record<string, unknown>, broken)
    holder[last] = value
    expect(() => parseManifest(JSON.stringify(broken), name), [...path, last].join('.')).toThrow(/manifest_invalid/)
  }
})

test('a manifest that is removed while an archive is read has no rows, and what is none is not read', async () => {
  const asked: string[] = []
  const storage = {
    async *list(prefix: string) {
      for (const name of ['home/none.json', 'home/none.json.part', 'home/other.json']) yield `${prefix}${name}`
    },
    readText: async (name: string) => void asked.push(name),
  } as unknown as Storage
  expect(await Array.fromAsync(readArchive(storage, { kinds: ['deliveries', 'events'] }))).toEqual([])
  expect(asked).toEqual(['manifest/deliveries/home/none.json', 'manifest/events/home/none.json'])
})
