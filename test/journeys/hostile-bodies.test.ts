import { afterAll, beforeAll, expect, test } from 'vitest'
import { findFastifySchema } from '../../src/http/route/schema.ts'
import type { ContractFixture } from '../contract/contract-fixture.ts'
import type { TestAnswer } from '../harness/app/app.ts'
import { findRouteOf, REQUESTS, startRequestFixture } from './route-requests.ts'

/**
 * What is hostile in a member of a body is refused in linear time, also by the rules behind its schema: an otherwise
 * successful request with that member as large as the body may be, and a body of 1 MiB.
 */

const MIB = 1_048_576
const LIMIT_BYTES = 65_536

/** Processor time of this thread, so that other programs do not count. */
const LIMIT_MS = 1_000
const TRIES = 3

/** Routes with rules of their own behind the schema of their body. */
const ROUTES = [
  ...[
    'webhook.create',
    'webhook.update',
    'webhook.pull',
    'webhook.ack',
    'webhook.nack',
    'webhook.extend',
    'webhook-mail.update',
  ],
  ...['mail-login.request', 'login.mail', 'sign-up.request', 'login.sign-up', 'login.find-connection'],
  ...[
    'user.update-own',
    'user.set-picture',
    'user.delete-own',
    'user.request-email-change',
    'user.confirm-email-change',
  ],
  ...['connection.create', 'connection.update', 'connection-domain.create', 'connection.read-metadata'],
  ...['realtime.resume', 'realtime.presence-auth'],
]

/** Settled refusals; 202 and the like where the value is one that is taken. */
const SETTLED = [200, 201, 202, 400, 401, 403, 404, 409, 410, 413, 422]

const fill = (text: string, size: number) => text.repeat(Math.floor(size / text.length))
const nest = (open: string, close: string, depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`

const toBase64 = (text: string) => Buffer.from(text).toString('base64')

/** Values as JSON, by what is hostile in them. */
function listValues(size: number): [string, string][] {
  const keys = Array.from({ length: size / 16 }, (_, at) => `"key-${at}":"a"`).join(',')
  return [
    ['a long word', `"${fill('a', size)}"`],
    ['blanks between two words', `"a${fill(' ', size)}b"`],
    ['characters of several bytes', `"${fill('\u{1f600}', size / 4)}"`],
    ['signs of addresses', `"${fill('a@a.', size)}"`],
    ['markup', `"${fill('<a b=c>', size)}"`],
    ['base64', `"whsec_${fill('AAAA', size)}"`],
    ['a list of texts', `[${fill('"a",', size)}"a"]`],
    ['an object of many members', `{${keys}}`],
    ['nested lists', nest('[', ']', size / 3)],
    ['nested objects', nest('{"a":', '}', size / 7)],
    ['members of a prototype', '{"__proto__":{"constructor":{"prototype":"a"}}}'],
    ['a large number', '1e308'],
    ['a character that cannot be kept', '"\\u0000\\ud800"'],
  ]
}

let fixture: ContractFixture
beforeAll(async () => {
  fixture = (await startRequestFixture()).fixture
})
afterAll(() => fixture?.[Symbol.asyncDispose]())

/** A schema of an object, as far as its members go. */
interface Shape {
  properties?: Record<string, Shape>
}

/** The members of a body, those of its inner objects as `outer.inner`. */
function listMembers(name: string): string[] {
  const { body } = findFastifySchema(findRouteOf(name)) as { body?: Shape }
  const properties = (schema: Shape | undefined) => Object.entries(schema?.properties ?? {})
  return properties(body).flatMap(([outer, schema]) => [
    outer,
    ...properties(schema).map(([inner]) => `${outer}.${inner}`),
  ])
}

/** A body as JSON, with a value in one of its members. */
function place(body: Record<string, unknown>, member: string, value: string): string {
  const [outer = '', inner] = member.split('.')
  const mark = '@@'
  const changed = inner ? { ...(body[outer] as object | undefined), [inner]: mark } : mark
  return JSON.stringify({ ...body, [outer]: changed }).replace(`"${mark}"`, () => value)
}

interface Sent {
  status: number
  length: number
  ms: number
}

/** An answer with the shortest processor time of up to three requests: a collection of garbage may fall into one. */
async function measure(request: () => Promise<TestAnswer>): Promise<Sent> {
  let shortest: Sent | undefined
  for (let at = 0; at < TRIES && (shortest === undefined || shortest.ms > LIMIT_MS); at += 1) {
    const before = process.threadCpuUsage()
    const { status, body } = await request()
    const { user, system } = process.threadCpuUsage(before)
    const ms = Math.min((user + system) / 1_000, shortest?.ms ?? Number.POSITIVE_INFINITY)
    shortest = { status, length: JSON.stringify(body).length, ms }
  }
  return shortest as Sent
}

const isFine = ({ status, length, ms }: Sent) => SETTLED.includes(status) && length < LIMIT_BYTES && ms < LIMIT_MS

test.each(ROUTES)('%s', async (name) => {
  // The limits of a minute count for each route anew.
  fixture.app.clock.advance(60_000)
  const route = findRouteOf(name)
  const admin = fixture.app.callAs(fixture.app.adminToken)
  const { params = {}, body = {}, call = admin } = (await REQUESTS[name]?.()) ?? {}
  const path = route.path.replace(/\{(\w+)\}/g, (_, param: string) => params[param] as string)
  const send = (text: string) => measure(() => call(route.method, path, text, { 'content-type': 'application/json' }))
  const size = (route.bodyLimitBytes ?? LIMIT_BYTES) - JSON.stringify(body).length - 1_024
  const members = listMembers(name)
  expect(members).not.toEqual([])
  const faults: string[] = []
  const values = listValues(size)
  for (const member of members)
    for (const [what, value] of values) {
      const text = place(body as Record<string, unknown>, member, value)
      const sent = await send(text)
      if (!isFine(sent)) faults.push(`${member}, ${what}: ${JSON.stringify(sent)}`)
    }
  const whole = await send(place(body as Record<string, unknown>, members[0] ?? '', `"${fill('a', MIB)}"`))
  expect(whole.status).toBe(413)
  expect(faults).toEqual([])
})

test.each<[string, (size: number) => string]>([
  ['a long word', (size) => fill('a', size)],
  ['padding between characters', (size) => fill('AA=', size)],
  ['nested elements', (size) => toBase64(`${fill('<a>', size / 2)}${fill('</a>', size / 2)}`)],
  ['open elements', (size) => toBase64(fill('<a xmlns:a="a">', size))],
  [
    'many attributes',
    (size) => toBase64(`<a ${Array.from({ length: size / 16 }, (_, at) => `a${at}="b"`).join(' ')}/>`),
  ],
  ['a type with entities', (size) => toBase64(`<!DOCTYPE a [<!ENTITY a "${fill('a', size)}">]><a>&a;&a;&a;</a>`)],
  ['comments', (size) => toBase64(`<a>${fill('<!---->', size)}</a>`)],
  ['bytes of no text', (size) => Buffer.alloc(size / 3, 0xff).toString('base64')],
])('login.saml-response with %s', async (_, build) => {
  fixture.app.clock.advance(60_000)
  const route = findRouteOf('login.saml-response')
  const { params = {}, call = fixture.app.anonymous, headers } = (await REQUESTS['login.saml-response']?.()) ?? {}
  const path = route.path.replace('{connection}', params.connection ?? '')
  // Base64 and the escapes of a form make two of one byte at most here.
  const text = build((route.bodyLimitBytes ?? 0) / 2)
  for (const body of [{ SAMLResponse: text }, { SAMLResponse: 'PGEvPg==', RelayState: text }]) {
    const form = new URLSearchParams(body).toString()
    const sent = await measure(() => call('POST', path, form, headers))
    expect(sent).toSatisfy(isFine)
    expect([400, 401, 404, 422]).toContain(sent.status)
  }
  const whole = await measure(() => call('POST', path, `SAMLResponse=${fill('a', MIB)}`, headers))
  expect(whole.status).toBe(413)
})
