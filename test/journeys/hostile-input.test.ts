import { type TSchema, Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { ROUTE_TREE } from '../../src/app/feature/route-tree.ts'
import type { RouteDeclaration } from '../../src/http/route/route.ts'
import { findFastifySchema } from '../../src/http/route/schema.ts'
import { buildFieldErrors, compileValidator } from '../../src/http/route/validation.ts'
import { closeObjects } from '../../src/http/shape/close-objects.ts'
import { sinkRoutes } from '../../src/webhook/sink/sink.routes.ts'
import { measureThread } from '../harness/run/linear.ts'

/**
 * Validation takes linear time for every input. Each position of every request schema gets hostile input of growing size,
 * through the validator and the formatter of errors: a quadratic cost fails at the second size instead of hanging at the
 * last. What is over a limit fails only if a quarter of the input takes less than a quarter of that time: on a busy machine
 * everything takes longer, also what is linear.
 */

const SIZES = [32_768, 131_072, 1_048_576]

/**
 * A tenth of the limit, with sizes at which a quadratic cost is over it soon, however fast the machine is: four times as long
 * at each of the first.
 */
const NARROW = { limitMs: 50, sizes: [8_192, 16_384, 32_768, 65_536, 1_048_576] }

/**
 * From this size on validation does the same whatever the size is: it is over the largest limit of a list of errors, and of a
 * body whose route sets none.
 */
const UNIFORM_SIZE = 131_072

/**
 * Processor time of this thread, so that other programs do not count. An honest input of 1 MiB takes 20 ms; what is
 * quadratic takes minutes.
 */
const WIDE = { limitMs: 500, sizes: SIZES }
const TRIES = 10

/** Time of a run that does not grow with its input, in milliseconds: a collection of garbage, or a compilation. */
const SLACK_MS = 10

type Part = 'body' | 'querystring' | 'params'
interface Subject {
  name: string
  part: Part
  schema: Node
  positions: Position[]
}

/** The schemas of all routes, each with its positions that no earlier schema has. */
function listSubjects(): Subject[] {
  const routes: readonly RouteDeclaration[] = [...ROUTE_TREE, ...sinkRoutes]
  const seen = new Set<string>()
  const isNew = (part: Part, { schema }: Position) => {
    const key = `${part} ${JSON.stringify(schema, (name, value) => (name === 'description' ? undefined : value))}`
    return !seen.has(key) && seen.add(key)
  }
  const subjects = routes.flatMap((route) => {
    const schemas = findFastifySchema(route) as Partial<Record<Part, Node>>
    return (['body', 'querystring', 'params'] as const).flatMap((part): Subject[] => {
      const schema = schemas[part]
      if (!schema) return []
      const positions = listPositions(schema).filter((position) => isNew(part, position))
      return [{ name: `${part} of ${route.method} ${route.path}`, part, schema, positions }]
    })
  })
  return subjects.filter(({ positions }) => positions.length > 0)
}

type Node = TSchema & {
  type?: string
  properties?: Record<string, Node>
  additionalProperties?: Node | boolean
  items?: Node
  required?: string[]
}

/** A position in an input: `place` builds an otherwise valid input with a value there. */
interface Position {
  path: string
  schema: Node
  place: (value: unknown) => unknown
}

function listPositions(schema: Node, path = '', place: Position['place'] = (value) => value): Position[] {
  const own = { path, schema, place }
  const { properties = {}, additionalProperties, items } = schema
  const members = Object.entries(properties).flatMap(([name, member]) =>
    listPositions(member, `${path}.${name}`, (value) => place({ ...buildSample(schema), [name]: value })),
  )
  const values =
    typeof additionalProperties === 'object'
      ? listPositions(additionalProperties, `${path}.*`, (value) => place({ 'x-any': value }))
      : []
  const entries = items ? listPositions(items, `${path}[]`, (value) => place([value])) : []
  return [own, ...members, ...values, ...entries]
}

const SAMPLES = [
  'a',
  '01890000-0000-7000-8000-000000000001',
  '01890000-0000-7000-8000-000000000001:1',
  'someone@example.com',
  '2026-09-11T08:00:00.000Z',
  'user:find-all',
  'ticket.open',
  'correct horse battery',
  'v'.repeat(43),
  'v'.repeat(22),
  '1.1',
  'private-account-01890000-0000-7000-8000-000000000001',
  'presence-account-01890000-0000-7000-8000-000000000001',
  'account-viewer',
  'public',
  'deny',
  'openid',
  'refresh_token',
  'oidc',
  1,
  true,
  null,
  {},
  ['a'],
  ['01890000-0000-7000-8000-000000000001'],
  ['01890000-0000-7000-8000-000000000001:1'],
  ['user:find-all'],
]

/** A small valid value; of an object, with its required members only. */
function buildSample({ properties, required = [] }: Node): Record<string, unknown> {
  if (!properties) return {}
  return Object.fromEntries(required.map((name) => [name, findSample(properties[name] as Node)]))
}

/** A sample takes the compilation of its schema, and a position is filled a hundred times. */
const samples = new Map<Node, unknown>()

function findSample(schema: Node): unknown {
  if (!samples.has(schema)) samples.set(schema, chooseSample(schema))
  return samples.get(schema)
}

function chooseSample(schema: Node): unknown {
  if (schema.properties) return buildSample(schema)
  if ('const' in schema) return schema.const
  if (schema.items?.properties) return [buildSample(schema.items)]
  const validate = compile({ part: 'body', schema })
  const sample = SAMPLES.find((value) => validate(value))
  if (sample === undefined && !validate(null)) throw new Error(`no sample for ${JSON.stringify(schema)}`)
  return sample ?? null
}

function compile({ part, schema }: Pick<Subject, 'part' | 'schema'>) {
  return compileValidator({ schema, httpPart: part, method: 'POST', url: '/' } as never) as ((
    value: unknown,
  ) => boolean) & {
    errors: Parameters<typeof buildFieldErrors>[0] | null
  }
}

const fill = (text: string, size: number) => text.repeat(Math.ceil(size / text.length)).slice(0, size)

/** A hostile input, built when it is measured: most need no large one. */
type Input = readonly [what: string, build: () => unknown]

/** Builds the value at its first use, and keeps it. */
function once(build: () => unknown): () => unknown {
  let built: { value: unknown } | undefined
  return () => {
    built ??= { value: build() }
    return built.value
  }
}

/** Long runs of one thing, and such runs that end in something else. */
const TEXTS = [' ', 'a', '0', '-', '.', '@', ':', ',', '|', '\\', '\u0001', '😀', 'a.', 'a-', 'a:', ' a', '2026-']
const ENDS = ['', '!', '\u0001']

function listHostileTexts(size: number): Input[] {
  const runs = TEXTS.flatMap((text) =>
    ENDS.map((end): Input => [`${JSON.stringify(text + end)} run`, () => fill(text, size - end.length) + end]),
  )
  const begun: Input[] = [
    ['an e-mail address of one label', () => `a@${fill('a', size)}`],
    ['an e-mail address of many labels', () => `a@${fill('a.', size)}!`],
    ['an instant with a long fraction', () => `2026-09-11T08:00:00.${fill('0', size)}Z`],
    ['a UUID with a tail', () => `01890000-0000-7000-8000-000000000001${fill('0', size)}`],
    ['a permission with a tail', () => `user:${fill('a-', size)}!`],
    ['a filter with many values', () => `created_at|in|${fill('2026-09-11T08:00:00Z,', size)}`],
  ]
  return [...runs, ...begun]
}

function nest(size: number, open: (inner: unknown) => unknown): unknown {
  let value: unknown = 1
  for (let depth = 0; depth < size / 6; depth += 1) value = open(value)
  return value
}

/** Lists, objects and depths that take about `size` bytes as JSON. */
function listHostileStructures(size: number): Input[] {
  const list = (length: number, build: (index: number) => unknown) => Array.from({ length }, (_, index) => build(index))
  const members = (length: number, build: (index: number) => [string, unknown]) =>
    Object.fromEntries(Array.from({ length }, (_, index) => build(index)))
  return [
    ['a list of one number', () => list(size / 2, () => 0)],
    ['a list of numbers', () => list(size / 8, (index) => index)],
    ['a list of one text', () => list(size / 4, () => 'a')],
    ['a list of texts', () => list(size / 10, (index) => `a${index}`)],
    ['a list of UUIDs', () => list(size / 40, (index) => `01890000-0000-7000-8000-${String(index).padStart(12, '0')}`)],
    ['a list of objects', () => list(size / 3, () => ({}))],
    ['a list of objects that differ', () => list(size / 16, (index) => ({ account: index }))],
    ['a list of lists', () => list(size / 3, () => [])],
    ['a list of nulls', () => list(size / 5, () => null)],
    ['an object of many members', () => members(size / 16, (index) => [`member${index}`, index])],
    ['an object of numbered members', () => members(size / 10, (index) => [String(index), 1])],
    ['an object with one long member', () => ({ [fill('a', size)]: 1 })],
    ['an object with a long member of slashes', () => ({ [fill('~/', size)]: 1 })],
    ['lists within lists', () => nest(size, (inner) => [inner])],
    ['objects within objects', () => nest(size, (inner) => ({ a: inner }))],
  ]
}

/** Lists of right and of nearly right entries, as long as `size` allows: each entry is looked into. */
function listFullLists({ schema }: Position, size: number): Input[] {
  const { items } = schema
  if (!items) return []
  const sample = findSample(items)
  const length = Math.floor(size / JSON.stringify(sample).length)
  const broken = items.properties ? { ...(sample as object), account: 1, more: 1 } : 1
  return [
    ['a list of right entries', () => Array.from({ length }, () => sample)],
    ['a list of broken entries', () => Array.from({ length }, () => broken)],
    ['a list of right entries and a broken one', () => [...Array.from({ length }, () => sample), broken]],
  ]
}

/** A run of the validator and the formatter, in milliseconds. Infinite if its errors are longer than an answer may be. */
function measure(validate: ReturnType<typeof compile>, input: unknown): number {
  let isTold = true
  const ms = measureThread(() => {
    if (validate(input)) return
    const errors = buildFieldErrors(validate.errors ?? [])
    isTold = errors.length <= 50 && JSON.stringify(errors).length <= 65_536
  })
  return isTold ? ms : Number.POSITIVE_INFINITY
}

/** Whether an input is slow in each of a few runs, since a collection of garbage may fall into one. */
function isSlow(measureWhole: () => number, measureQuarter: () => number, limitMs: number): boolean {
  for (let run = 0; run < TRIES; run += 1) {
    const ms = measureWhole()
    if (ms < limitMs) return false
    if (ms === Number.POSITIVE_INFINITY) return true
    if (ms < 4 * (measureQuarter() + SLACK_MS)) return false
  }
  return true
}

/**
 * The first input that takes longer than the limit, at the smallest size at which any does. An input that stays below the
 * limit at the next size even if its cost is quadratic is not measured there.
 */
function findSlow({ part, schema, positions }: Omit<Subject, 'name'>, { limitMs, sizes } = WIDE): string | undefined {
  const validate = compile({ part, schema })
  let isExcused = (_input: string) => false
  for (const [index, size] of sizes.entries()) {
    const excused = new Set<string>()
    const growth = ((sizes[index + 1] ?? size) / size) ** 2
    for (const position of positions) {
      const list = (length: number) => [...listInputs(part, position, length), ...listFullLists(position, length)]
      for (const [at, [what, build]] of list(size).entries()) {
        const input = `${position.path}: ${what}`
        if (isExcused(input)) continue
        const value = position.place(build())
        const ms = measure(validate, value)
        const measureQuarter = () => measure(validate, position.place(list(size / 4)[at]?.[1]()))
        if (ms > limitMs && isSlow(() => measure(validate, value), measureQuarter, limitMs))
          return `${input} of ${size}: ${Math.round(ms)} ms`
        if (size >= UNIFORM_SIZE && ms * growth < limitMs) excused.add(input)
      }
    }
    isExcused = (input) => excused.has(input)
  }
  return undefined
}

const inputsOfSize = new Map<number, Record<'texts' | 'structures', Input[]>>()

/**
 * The inputs for a position. A value of another type ends at its type, wherever it stands, so it is tried at the root of a
 * body alone; what is not a body is converted first.
 */
function listInputs(part: Part, { path, schema: { type } }: Position, size: number): Input[] {
  const keep = (inputs: Input[]) => inputs.map(([what, make]): Input => [what, once(make)])
  const build = () => ({ texts: keep(listHostileTexts(size)), structures: keep(listHostileStructures(size)) })
  const { texts, structures } = inputsOfSize.get(size) ?? build()
  inputsOfSize.set(size, { texts, structures })
  const isAny = part !== 'body' || path === '' || typeof type !== 'string'
  const isText = type === 'string'
  const isStructure = type === 'object' || type === 'array'
  return [...(isAny || isText ? texts : []), ...(isAny || isStructure ? structures : [])]
}

describe('hostile input at every position of', () => {
  const subjects = listSubjects()

  test('all bodies, queries and path parameters is covered', () => {
    const bodies = subjects.filter(({ part }) => part === 'body')
    expect(bodies.length).toBeGreaterThan(15)
    expect(subjects.flatMap(({ positions }) => positions).length).toBeGreaterThan(60)
  })

  test.each(subjects.map((subject) => [subject.name, subject] as const))(
    '%s takes time linear in its size',
    (_, subject) => {
      expect(findSlow(subject)).toBeUndefined()
    },
  )
})

test('a quadratic pattern fails the same measurement before the last size', () => {
  const schema = closeObjects(Type.Object({ name: Type.String({ pattern: '^a*a*$' }) }))
  const slow = findSlow({ part: 'body', schema, positions: listPositions(schema) }, NARROW)
  expect(slow).toMatch(/^\.name: "a.*" run of \d+: \d+ ms$/)
  expect(slow).not.toContain('of 1048576')
})
