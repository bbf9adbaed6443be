import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../test/harness/run/any-text.ts'
import {
  buildTraceHeaders,
  formatTraceContext,
  parseStoredContext,
  parseTraceContext,
  parseTracestate,
} from './trace-context.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

function parse(traceparent: string | undefined, tracestate?: string) {
  return parseTraceContext({ traceparent, tracestate })
}

describe('traceparent', () => {
  test('holds trace id, span id and the sampled flag', () => {
    expect(parse(`00-${TRACE}-${SPAN}-01`)).toEqual({ traceId: TRACE, spanId: SPAN, isSampled: true })
    expect(parse(`00-${TRACE}-${SPAN}-00`)).toEqual({ traceId: TRACE, spanId: SPAN, isSampled: false })
  })

  test('keeps only the sampled flag', () => {
    expect(parse(`00-${TRACE}-${SPAN}-ff`)?.isSampled).toBe(true)
    expect(parse(`00-${TRACE}-${SPAN}-fe`)?.isSampled).toBe(false)
    expect(parse(`00-${TRACE}-${SPAN}-09`)?.isSampled).toBe(true)
  })

  test.each([
    ['a higher version of the same length', `cc-${TRACE}-${SPAN}-01`],
    ['a higher version with more after a dash', `cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`],
    ['the highest version', `fe-${TRACE}-${SPAN}-01`],
  ])('is parsed when it is %s', (_, text) => {
    expect(parse(text)).toEqual({ traceId: TRACE, spanId: SPAN, isSampled: true })
  })

  test.each([
    ['missing', undefined],
    ['empty', ''],
    ['no version', `${TRACE}-${SPAN}-01`],
    ['the forbidden version', `ff-${TRACE}-${SPAN}-01`],
    ['an upper-case version', `CC-${TRACE}-${SPAN}-01`],
    ['version 00 with more after it', `00-${TRACE}-${SPAN}-01-more`],
    ['version 00 with a dash after it', `00-${TRACE}-${SPAN}-01-`],
    ['a higher version with more and no dash', `cc-${TRACE}-${SPAN}-01.what`],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['an upper-case trace', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['an upper-case span', `00-${TRACE}-${SPAN.toUpperCase()}-01`],
    ['a trace one digit short', `00-${TRACE.slice(1)}-${SPAN}-01`],
    ['a trace one digit long', `00-${TRACE}a-${SPAN}-01`],
    ['a span one digit short', `00-${TRACE}-${SPAN.slice(1)}-01`],
    ['no hex', `00-${TRACE.replace('4', 'g')}-${SPAN}-01`],
    ['flags that are no hex', `00-${TRACE}-${SPAN}-0x`],
    ['one digit of flags', `00-${TRACE}-${SPAN}-1`],
    ['underscores', `00_${TRACE}_${SPAN}_01`],
    ['a space before', ` 00-${TRACE}-${SPAN}-01`],
    ['a line end after', `00-${TRACE}-${SPAN}-01\n`],
    ['sent twice', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
    ['sent twice in a higher version', `cc-${TRACE}-${SPAN}-01-a, cc-${TRACE}-${SPAN}-01-a`],
    ['very long', `00-${'a'.repeat(100_000)}`],
  ])('is ignored when it is %s', (_, text) => {
    expect(parse(text, 'a=1')).toBeUndefined()
  })
})

describe('tracestate', () => {
  const keys = (count: number) => Array.from({ length: count }, (_, at) => `k${at}=1`).join(',')

  test.each([
    ['congo=t61rcWkgMzE', 'congo=t61rcWkgMzE'],
    ['a=1, b=2\t,\tc=3', 'a=1,b=2,c=3'],
    [',a=1,,b=2,', 'a=1,b=2'],
    ['a= inside and before', 'a= inside and before'],
    ['0tenant@system=1', '0tenant@system=1'],
    ['a_-*/9=!~', 'a_-*/9=!~'],
    [keys(32), keys(32)],
    [`${'a'.repeat(256)}=1`, `${'a'.repeat(256)}=1`],
    [`a=${'x'.repeat(256)}`, `a=${'x'.repeat(256)}`],
    [`${'t'.repeat(241)}@${'s'.repeat(14)}=1`, `${'t'.repeat(241)}@${'s'.repeat(14)}=1`],
  ])('%s is passed along as %s', (text, passed) => {
    expect(parseTracestate(text)).toBe(passed)
  })

  test.each([
    ['empty', ''],
    ['only blanks and commas', ' ,\t, '],
    ['no value', 'a='],
    ['no equals sign', 'a'],
    ['no key', '=1'],
    ['two equals signs', 'a=1=2'],
    ['a key that begins with a digit', '0a=1'],
    ['an upper-case key', 'A=1'],
    ['a blank in the key', 'a b=1'],
    ['a tenant and nothing', 'a@=1'],
    ['a system and no tenant', '@a=1'],
    ['two tenants', 'a@b@c=1'],
    ['a value that is no ASCII', 'a=é'],
    ['a control character', 'a=\u0001'],
    ['a key twice', 'a=1,b=2,a=3'],
    ['33 members', keys(33)],
    ['a key of 257', `${'a'.repeat(257)}=1`],
    ['a value of 257', `a=${'x'.repeat(257)}`],
    ['a tenant of 242', `${'t'.repeat(242)}@s=1`],
    ['a system of 15', `t@${'s'.repeat(15)}=1`],
  ])('is dropped when it is %s, and the trace stays', (_, text) => {
    expect(parseTracestate(text)).toBeUndefined()
    expect(parse(`00-${TRACE}-${SPAN}-01`, text)).toEqual({ traceId: TRACE, spanId: SPAN, isSampled: true })
  })

  test('over 512 characters drops large members first, then the oldest', () => {
    const large = `large=${'x'.repeat(200)}`
    const small = (key: string) => `${key}=${'x'.repeat(98)}`
    const all = ['a', 'b', 'c', 'd'].map(small)
    expect(parseTracestate([all[0], large, ...all.slice(1)].join(','))).toBe(all.join(','))
    expect(parseTracestate([...all, small('e'), small('f')].join(','))).toBe([...all, small('e')].join(','))
  })

  test('of exactly 512 characters is unchanged, and one more drops its last member', () => {
    const head = ['a', 'b', 'c', 'd', 'e'].map((key) => `${key}=${'x'.repeat(98)}`).join(',')
    const fits = `${head},f=${'x'.repeat(512 - head.length - 3)}`
    expect(fits).toHaveLength(512)
    expect(parseTracestate(fits)).toBe(fits)
    expect(parseTracestate(`${fits}x`)).toBe(head)
  })
})

const hex = (length: number) =>
  fc.stringMatching(new RegExp(`^[0-9a-f]{${length}}$`)).filter((text) => /[^0]/.test(text))
const contexts = fc.record(
  {
    traceId: hex(32),
    spanId: hex(16),
    isSampled: fc.boolean(),
    tracestate: fc
      .uniqueArray(fc.stringMatching(/^[a-z]{1,4}=[!-+]{1,4}$/), {
        minLength: 1,
        maxLength: 32,
        selector: (member) => member.split('=')[0],
      })
      .map((members) => members.join(',')),
  },
  { requiredKeys: ['traceId', 'spanId', 'isSampled'] },
)

describe('for any input', () => {
  test('a context round-trips through its headers and its column', () => {
    fc.assert(
      fc.property(contexts, (context) => {
        const { traceparent, tracestate } = buildTraceHeaders(context)
        expect(parse(traceparent, tracestate)).toEqual(context)
        const stored = formatTraceContext(context)
        expect(parseStoredContext(stored)).toEqual(context)
        expect(stored.split(' ', 1)[0]).toHaveLength(34)
        // As releases before stored it.
        const before = tracestate === undefined ? traceparent : `${traceparent} ${tracestate}`
        expect(parseStoredContext(before)).toEqual(context)
      }),
    )
  })

  test('parsing does not throw, and the propagated context is valid, within its limits, and round-trips', () => {
    const valid = fc.tuple(hex(32), hex(16), hex(2)).map(([trace, span, flags]) => `00-${trace}-${span}-${flags}`)
    const texts = fc.oneof(
      fc.string({ unit: anyCharacter, maxLength: 80 }),
      valid,
      fc.stringMatching(/^[0-9a-f-]{0,60}$/),
    )
    const members = fc.stringMatching(/^[a-z0-9@_]{1,5}=[ -~]{0,120}$/)
    const states = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.array(members, { maxLength: 8 }).map((list) => list.join(',')),
    )
    fc.assert(
      fc.property(texts, states, (traceparent, tracestate) => {
        const context = parse(traceparent, tracestate)
        if (!context) return
        const headers = buildTraceHeaders(context)
        expect(headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/)
        expect((headers.tracestate ?? '').length).toBeLessThanOrEqual(512)
        expect(headers.tracestate ?? 'a').toMatch(/^[\x20-\x7e]+$/)
        expect(parse(headers.traceparent, headers.tracestate)).toEqual(context)
      }),
      { numRuns: 300 },
    )
  })

  test('an invalid column is parsed as no context', () => {
    expect(parseStoredContext('')).toBeUndefined()
    expect(parseStoredContext(' a=1')).toBeUndefined()
    expect(parseStoredContext('A'.repeat(34))).toBeUndefined()
    expect(parseStoredContext('_'.repeat(33))).toBeUndefined()
    expect(parseStoredContext(`00-${TRACE}-${SPAN}-01  `)?.tracestate).toBeUndefined()
  })
})
