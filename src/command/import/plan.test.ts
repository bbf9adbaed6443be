import { expect, test } from 'vitest'
import { systemRandom } from '../../base/random.ts'
import { type Plan, type PlanRules, planEndpoint } from './plan.ts'
import type { Endpoint } from './source/source.ts'

const RULES: PlanRules = {
  ...{ map: new Map(), known: new Set(['contract.update']), leftOut: new Set(), ignoreFilters: false },
}
const SECRET = `whsec_${systemRandom.bytes(32).toString('base64')}`

const plan = (members: Partial<Endpoint>, rules: Partial<PlanRules> = {}): Plan =>
  planEndpoint(
    {
      id: 'ep_1',
      url: 'https://example.com/hook',
      name: undefined,
      description: undefined,
      isDisabled: false,
      eventTypes: ['contract.update'],
      secret: SECRET,
      headers: new Map(),
      hindrances: [],
      maxPerSecond: null,
      notes: [],
      ...members,
    },
    { ...RULES, ...rules },
  )

test('a plain endpoint becomes a webhook with its secret', () => {
  expect(plan({ name: 'a\nb', description: 'x'.repeat(600) })).toEqual({
    kind: 'create',
    draft: {
      url: 'https://example.com/hook',
      name: 'a b',
      description: 'x'.repeat(500),
      secret: SECRET,
      events: ['contract.update'],
    },
    isDisabled: false,
    notes: [],
  })
})

const types = (count: number) => Array.from({ length: count }, (_, index) => `type.${index}`)
const headers = (count: number) => new Map(Array.from({ length: count }, (_, index) => [`x-${index}`, 'v']))

test.each([
  [{ eventTypes: types(1000) }, { known: new Set(types(1000)) }, 'create'],
  [{ eventTypes: types(1001) }, { known: new Set(types(1001)) }, 'no_event_types'],
  [{ eventTypes: [] }, {}, 'no_event_types'],
  [{ eventTypes: ['a'] }, { map: new Map([['a', []]]) }, 'leave_out'],
  [{ headers: headers(10) }, {}, 'create'],
  [{ headers: headers(11) }, {}, 'header_refused'],
  [{ headers: new Map([['x-a', 'v'.repeat(1024)]]) }, {}, 'create'],
  [{ headers: new Map([['x-a', 'v'.repeat(1025)]]) }, {}, 'header_refused'],
  [{ headers: new Map([['x-a', '']]) }, {}, 'header_refused'],
  [{ headers: new Map([['x-a', 'secret-value ']]) }, {}, 'header_refused'],
  [
    {
      headers: new Map([
        ['X-A', 'v'],
        ['x-a', 'v'],
      ]),
    },
    {},
    'header_refused',
  ],
  [{ headers: new Map([['svix-id', 'v']]) }, {}, 'header_refused'],
  [{ headers: new Map([['a b', 'secret-value']]) }, {}, 'header_refused'],
  [{ secret: undefined }, {}, 'secret_unusable'],
] satisfies [Partial<Endpoint>, Partial<PlanRules>, string][])('%j under %j: %s', (members, rules, outcome) => {
  const made = plan(members, rules)
  expect(made.kind === 'skip' ? made.reason : made.kind).toBe(outcome)
  expect(JSON.stringify(made)).not.toContain('secret-value')
})

test('a narrower filter is a note where it is accepted, and no other hindrance is', () => {
  const narrow = { code: 'narrower_filter', detail: 'channels a' } as const
  expect(plan({ hindrances: [narrow] })).toMatchObject({ kind: 'skip', reason: 'narrower_filter' })
  expect(plan({ hindrances: [narrow] }, { ignoreFilters: true })).toMatchObject({
    kind: 'create',
    notes: ['left out, so that it receives more: channels a'],
  })
  const method = { code: 'method', detail: 'PUT' } as const
  expect(plan({ hindrances: [narrow, method] }, { ignoreFilters: true })).toMatchObject({ reason: 'method' })
})

test('an endpoint is left out by its id before its hindrances are judged, and by its types when all of them are', () => {
  const map = new Map([
    ['a.b', []],
    ['c.d', ['contract.update']],
    ['*', []],
  ])
  const method = { code: 'method', detail: 'PUT' } as const
  expect(plan({ hindrances: [method] }, { leftOut: new Set(['ep_1']) })).toEqual({
    kind: 'leave_out',
    why: 'named by --leave-out',
  })
  expect(plan({ eventTypes: ['a.b'] }, { map })).toEqual({
    kind: 'leave_out',
    why: 'each of its event types is null in --events',
  })
  expect(plan({ eventTypes: 'all' }, { map })).toEqual({
    kind: 'leave_out',
    why: 'each of its event types is null in --events',
  })
  expect(plan({ eventTypes: ['a.b', 'c.d'] }, { map })).toMatchObject({ draft: { events: ['contract.update'] } })
  expect(plan({ eventTypes: ['a.b', 'e.f'] }, { map })).toMatchObject({ reason: 'unknown_event_types' })
  expect(plan({ eventTypes: [] }, { map })).toMatchObject({ reason: 'no_event_types' })
})
