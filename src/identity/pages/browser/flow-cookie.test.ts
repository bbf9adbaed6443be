import { stringifySetCookie } from 'cookie'
import { expect, test } from 'vitest'
import { buildKeyring } from '../../../base/keyring.ts'
import { systemRandom } from '../../../base/random.ts'
import { buildFlowCookies, type FlowCookies, OPEN_FLOWS } from './flow-cookie.ts'

const SECRETS = ['one'.padEnd(32, '1'), 'two'.padEnd(32, '2')]
const SAFE = { isSecure: true, isHostBound: true }
const build = (secrets: readonly string[] = SECRETS, safety = SAFE) =>
  buildFlowCookies(buildKeyring(secrets, systemRandom), safety)
const START_MS = Date.UTC(2026, 10, 27)

/** A browser that keeps cookies. */
class Jar {
  readonly kept = new Map<string, string>()
  private readonly cookies: FlowCookies
  constructor(cookies: FlowCookies) {
    this.cookies = cookies
  }
  get header() {
    return [...this.kept].map((pair) => pair.join('=')).join('; ')
  }
  begin(id: string, second = 0, continues?: string) {
    const now = new Date(START_MS + second * 1000)
    this.keep(this.cookies.begin(this.header, { id, lifetimeSeconds: 600, now, continues }))
  }
  keep(set: ReturnType<FlowCookies['begin']>) {
    for (const { name, value, maxAgeSeconds } of set)
      if (maxAgeSeconds === 0) this.kept.delete(name)
      else this.kept.set(name, value)
  }
  owns(id: string) {
    return this.cookies.isOwn(this.header, id)
  }
}

test('a flow is of the browser in which it began, until it ends there', () => {
  const cookies = build()
  const [jar, other] = [new Jar(cookies), new Jar(cookies)]
  for (const id of ['one', 'two']) jar.begin(id)
  other.begin('three')
  expect(['one', 'two', 'three'].map((id) => jar.owns(id))).toEqual([true, true, false])
  expect(cookies.end(other.header, 'one')).toEqual([])
  jar.keep(cookies.end(jar.header, 'one'))
  expect([jar.owns('one'), jar.owns('two'), jar.kept.size]).toEqual([false, true, 1])
  expect([cookies.isOwn(undefined, 'one'), cookies.isOwn(jar.header, undefined)]).toEqual([false, false])
  expect([cookies.end(undefined, 'two'), cookies.end(jar.header, undefined)]).toEqual([[], []])
})

test('its cookie is of this host, out of reach of scripts and of forms of other sites', () => {
  const attributes = { path: '/', maxAgeSeconds: 600, httpOnly: true, sameSite: 'lax' }
  const [cookie] = build().begin(undefined, { id: 'one', lifetimeSeconds: 600, now: new Date(START_MS) })
  const name = expect.stringMatching(/^__Host-signalbox_flow_[\w-]{8}$/)
  expect(cookie).toEqual({
    ...attributes,
    name,
    value: expect.stringMatching(/^[0-9a-z]{6}\.[\w-]{22}$/),
    secure: true,
  })
  const plain = build(SECRETS, { isSecure: false, isHostBound: false })
  const flow = { id: 'one', lifetimeSeconds: 600, now: new Date(START_MS) }
  expect(plain.begin(undefined, flow)[0]).toMatchObject({
    name: expect.stringMatching(/^signalbox_flow_/),
    secure: false,
  })
  // Another host of the domain can set the plain name.
  const planted = plain.begin(undefined, flow).map(({ name, value }) => `${name}=${value}`)
  expect(build().isOwn(planted.join('; '), 'one')).toBe(false)
})

test('a cookie of another flow, of another key, or changed is none; one of an earlier key is', () => {
  const jar = new Jar(build())
  jar.begin('one')
  jar.begin('two')
  const [[first = '', value = ''] = [], [second = ''] = []] = jar.kept
  const isOwn = (name: string, text: string, cookies = build()) => cookies.isOwn(`${name}=${text}`, 'two')
  expect(isOwn(second, value)).toBe(false)
  expect(isOwn(first, jar.kept.get(second) ?? '')).toBe(false)
  const own = jar.kept.get(second) ?? ''
  expect(isOwn(second, own)).toBe(true)
  for (const text of [
    '',
    '.',
    own.split('.')[1] ?? '',
    `${own}A`,
    own.slice(0, -2),
    own.replace('.', '..'),
    'x'.repeat(8_000),
  ])
    expect(isOwn(second, text), text).toBe(false)
  expect(isOwn(second, own, build(SECRETS.toReversed()))).toBe(true)
  expect(isOwn(second, own, build(['three'.padEnd(32, '3')]))).toBe(false)
})

test('a browser has as many as the limit, the oldest is dropped, and the one that is continued is not counted', () => {
  const cookies = build()
  const jar = new Jar(cookies)
  // Not in the order of their names.
  for (let flow = 0; flow < OPEN_FLOWS; flow += 1) jar.begin(`flow ${flow}`, flow)
  jar.kept.set('signalbox_session', 'jwt')
  expect(jar.kept.size).toBe(OPEN_FLOWS + 1)
  jar.begin('next', OPEN_FLOWS, 'flow 5')
  jar.keep(cookies.end(jar.header, 'flow 5'))
  expect(jar.owns('flow 0')).toBe(true)
  jar.begin('later', OPEN_FLOWS + 1)
  jar.kept.delete('signalbox_session')
  expect(jar.kept.size).toBe(OPEN_FLOWS)
  expect([jar.owns('flow 0'), jar.owns('flow 1'), jar.owns('next'), jar.owns('later')]).toEqual([
    false,
    true,
    true,
    true,
  ])
  expect(Buffer.byteLength(jar.header)).toBeLessThan(1_100)
})

test('flows that begin at the same moment keep theirs, and the next one brings them below the limit', () => {
  const cookies = build()
  const jar = new Jar(cookies)
  const now = new Date(START_MS)
  for (let tab = 0; tab < 24; tab += 1) jar.keep(cookies.begin('', { id: `tab ${tab}`, lifetimeSeconds: 600, now }))
  expect(jar.kept.size).toBe(24)
  jar.begin('next', 1)
  expect([jar.kept.size, jar.owns('next')]).toEqual([OPEN_FLOWS, true])
})

test('a header of a stranger makes few cookies and no fault, and does not keep the flow from its cookie', () => {
  const cookies = build()
  const name = '__Host-signalbox_flow_'
  const many = Array.from({ length: 600 }, (_, count) => `${name}${String(count).padStart(8, '0')}=x`)
  const odd = ['"; a=b', 'é7', '', 'aaaaaaa\u0001', '()<>@,;:', '.......='].map((text) => `${name}${text}=1`)
  for (const header of [many.join('; '), odd.join('; '), '='.repeat(16_000), ';'.repeat(16_000), name.repeat(700)]) {
    const set = cookies.begin(header, { id: 'one', lifetimeSeconds: 600, now: new Date(START_MS) })
    expect(set.length).toBeLessThanOrEqual(1 + OPEN_FLOWS)
    expect(set[0]?.value).not.toBe('')
    for (const cookie of set) expect(() => stringifySetCookie({ ...cookie })).not.toThrow()
    expect(cookies.isOwn(header, 'one')).toBe(false)
  }
})
