import { describe, expect, test } from 'vitest'
import { filterCommands } from '../src/frame/command/filter-commands.ts'
import { addRecent, isOfOne } from '../src/frame/command/recent.ts'
import { DEFAULT_KEYS, findShortcut, isKey } from '../src/frame/command/shortcut-keys.ts'
import { findNext } from '../src/frame/command/shortcuts.ts'
import { parsePreferences } from '../src/frame/preferences.ts'
import { describeLength } from '../src/parts/age.ts'
import { formatInstant } from '../src/parts/format-instant.ts'
import { filterTypes, groupTypes, listGroups, stateOf } from '../src/screens/catalogue/filter-types.ts'
import { addLine, filterLines, isChannelName, KEPT, type Line, toNdjson } from '../src/screens/realtime/lines.ts'

const ID = '01997e2a-6c00-7000-8000-0000000000a1'

describe('the choices of a browser', () => {
  const DEFAULTS = {
    density: 'comfortable',
    timeZone: 'local',
    shortcuts: true,
    keys: DEFAULT_KEYS,
    hidden: { deliveries: ['trigger'] },
  }

  test.each([
    [null, DEFAULTS],
    ['', DEFAULTS],
    ['null', DEFAULTS],
    ['{"density":"huge","timeZone":7,"shortcuts":"no","hidden":[]}', DEFAULTS],
    [
      '{"hidden":{"deliveries":["next"],"webhooks":[7],"users":"all"}}',
      { ...DEFAULTS, hidden: { deliveries: ['next'] } },
    ],
    [
      '{"density":"compact","timeZone":"utc","shortcuts":false,"other":1}',
      { ...DEFAULTS, density: 'compact', timeZone: 'utc', shortcuts: false },
    ],
    ['{"keys":{"next":"n","replay":"ё"}}', { ...DEFAULTS, keys: { ...DEFAULT_KEYS, next: 'n', replay: 'ё' } }],
    ['{"keys":{"next":"nn","previous":" ","go":7,"list":"\\n","other":"x"}}', DEFAULTS],
    ['{"keys":{"next":"k"}}', DEFAULTS],
    ['{"keys":{"next":"k","previous":"j"}}', { ...DEFAULTS, keys: { ...DEFAULT_KEYS, next: 'k', previous: 'j' } }],
    ['{"keys":["a"]}', DEFAULTS],
  ])('stored as %j are %j', (text, wanted) => {
    expect(parsePreferences(text)).toEqual(wanted)
  })
})

test('a key is one visible character, and belongs to one shortcut', () => {
  expect(['j', '?', 'ß', '你', '😀'].filter(isKey)).toHaveLength(5)
  expect(['', 'ab', ' ', '\u200b', '\t', '\ud83d', 7, null].filter(isKey)).toEqual([])
  expect(findShortcut(DEFAULT_KEYS, 'j')).toBe('next')
  expect(findShortcut(DEFAULT_KEYS, 'J')).toBeUndefined()
})

test('an instant is shown in UTC with its name, or in the zone of the browser', () => {
  const at = '2026-09-11T12:00:00.000Z'
  expect(formatInstant(at, 'de', 'UTC')).toBe('11.09.2026, 12:00:00 UTC')
  expect(formatInstant(at, 'de', undefined)).not.toContain('UTC')
})

test.each([
  [15, '15 sec'],
  [60, '1 min'],
  [90, '90 sec'],
  [7_200, '2 hr'],
  [0.5, '0.5 sec'],
])('%d seconds are %s', (seconds, wanted) => {
  expect(describeLength(seconds, 'en')).toBe(wanted)
})

describe('the palette', () => {
  const commands = ['Event catalogue', 'Events', 'Create a webhook'].map((label) => ({
    label,
    group: '',
    run: () => {},
  }))
  test.each([
    ['', ['Event catalogue', 'Events', 'Create a webhook']],
    ['ev', ['Event catalogue', 'Events']],
    ['cat ev', ['Event catalogue']],
    ['hook', []],
    ['WEB', ['Create a webhook']],
  ])('offers for %j %j', (text, wanted) => {
    expect(filterCommands(commands, text).map(({ label }) => label)).toEqual(wanted)
  })

  test('keeps the last pages of single things, each once', () => {
    const items = Array.from({ length: 9 }, (_, index) => ({ path: `/${index % 8}`, title: `${index}` }))
    const kept = items.reduce(addRecent, [])
    expect(kept.map(({ title }) => title)).toEqual(['8', '7', '6', '5', '4', '3'])
    expect([`/console/users/${ID}`, '/console/users', `/console/users/${ID}/x`].map(isOfOne)).toEqual([
      true,
      false,
      false,
    ])
  })
})

test.each([
  [3, -1, 1, 0],
  [3, -1, -1, 2],
  [3, 0, 1, 1],
  [3, 2, 1, 2],
  [3, 0, -1, 0],
] as const)('of %d rows, from %d by %d: %d', (count, index, step, wanted) => {
  expect(findNext(count, index, step)).toBe(wanted)
})

describe('the catalogue', () => {
  const type = (internal: string, change = {}) =>
    ({ document_id: internal, internal, is_actived: true, route: '/r', description: 'Says', ...change }) as never
  const types = [
    type('contract.create', { group: 'sales' }),
    type('contract.gone'),
    type('user.create', { is_actived: false }),
  ]
  const stale = new Set(['contract.gone', 'user.create'])

  test.each([
    [{}, 3],
    [{ q: 'CREATE' }, 2],
    [{ q: '/r' }, 3],
    [{ q: 'says' }, 3],
    [{ q: 'nothing' }, 0],
    [{ resource: 'contract' }, 2],
    [{ state: 'stale' }, 1],
    [{ state: 'inactive' }, 1],
    [{ state: 'active', resource: 'user' }, 0],
    [{ group: 'sales' }, 1],
    [{ group: 'sale' }, 0],
  ])('by %j has %d', (filters, count) => {
    expect(filterTypes(types, filters, stale)).toHaveLength(count)
  })

  test('lists event types by their group, then by their resource', () => {
    const all = [...types, type('order.create', { group: 'sales' }), type('contract.update', { group: 'sales' })]
    expect(listGroups(all)).toEqual(['sales'])
    expect(groupTypes(all).map(({ group, resource, members }) => [group, resource, members.length])).toEqual([
      ['', 'contract', 1],
      ['', 'user', 1],
      ['sales', 'contract', 2],
      ['sales', 'order', 1],
    ])
  })

  test('calls a row stale until it rests', () => {
    expect(types.map((type) => stateOf(type, stale))).toEqual(['active', 'stale', 'inactive'])
  })
})

describe('the messages of the inspector', () => {
  const line = (id: number, event = 'contract.create'): Line => ({
    ...{ id, at: '2026-09-11T12:00:00.000Z', direction: 'in', channel: 'private-account-a', event, bytes: 2 },
    data: { id },
  })

  test('come newest first, and the oldest go beyond the limit', () => {
    const lines = Array.from({ length: KEPT + 1 }, (_, index) => line(index)).reduce(addLine, [] as Line[])
    expect([lines.length, lines[0]?.id, lines.at(-1)?.id]).toEqual([KEPT, KEPT, 1])
  })

  test('are found by channel, event and data, and handed out oldest first', () => {
    const lines = [line(2, 'contract.update'), line(1)]
    expect(filterLines(lines, ' UPDATE ')).toHaveLength(1)
    expect(filterLines(lines, '"id":1')).toHaveLength(1)
    expect(filterLines(lines, '')).toHaveLength(2)
    const rows = toNdjson(lines).trim().split('\n')
    expect(rows.map((row) => JSON.parse(row).event)).toEqual(['contract.create', 'contract.update'])
  })

  test.each([
    [`private-account-${ID}`, true],
    [`private-contract-${ID}`, true],
    [`private-account-${ID.toUpperCase()}`, false],
    [`private-user-${ID}`, false],
    [`private-account-${ID} `, false],
    ['', false],
  ])('a channel %j: %s', (name, wanted) => {
    expect(isChannelName(name)).toBe(wanted)
  })
})
