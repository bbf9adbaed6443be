import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { measureThread } from '../../../test/harness/run/linear.ts'
import { buildCarriedSeal, peekOrigin, readCarried, writeCarried } from './carried-event.ts'

const uuid = fc.uuid()
const text = fc.string({ unit: 'grapheme', maxLength: 60 }).filter((value) => !value.includes('\0'))
const event = fc.record({
  ...{ id: uuid, type: text, account: fc.option(uuid), resource: text, action: text, resourceId: fc.option(text) },
  ...{ url: fc.option(text), trace: fc.option(text), isPurge: fc.boolean(), excludedWebhook: fc.option(uuid) },
  createdAt: fc.date({ min: new Date(0), max: new Date(Date.UTC(2400, 0)), noInvalidDate: true }),
  carried: fc.record({ home: uuid, origin: fc.constantFrom('home', 'c1'), reference: fc.option(fc.constant('1F/A0')) }),
})

describe('an event that databases tell each other', () => {
  test('is read as it was written, from a header in printable ASCII', () => {
    fc.assert(
      fc.property(event, (given) => {
        const { carried, ...own } = given
        const written = writeCarried(given as never)
        expect(written).toMatch(/^[ -~]*$/)
        expect(readCarried(written)).toEqual({ event: own, carried })
      }),
    )
  })

  test('names its origin before its seal is checked, and any other text names none', () => {
    const { seal } = buildCarriedSeal([Buffer.alloc(32, 1)])
    fc.assert(
      fc.property(event, fc.string(), (given, other) => {
        const sealed = seal(writeCarried(given as never))
        expect(peekOrigin(sealed)).toBe(given.carried.origin)
        expect(peekOrigin(sealed.slice(1))).toBeUndefined()
        expect(peekOrigin(other)).toBeUndefined()
      }),
    )
  })

  test('is nothing else: other texts are no event, and none throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (given) => {
        expect(readCarried(given)).toBeUndefined()
      }),
    )
    const good = JSON.parse(
      writeCarried({
        ...{ id: '0190a5c0-0000-7000-8000-00000000000a', type: 'a.b', account: null, resource: 'a', action: 'b' },
        ...{ resourceId: null, url: null, trace: null, isPurge: false, excludedWebhook: null, createdAt: new Date(0) },
        carried: { home: '0190a5c0-0000-7000-8000-00000000000b', origin: 'home', reference: null },
      } as never),
    )
    expect(readCarried(JSON.stringify(good))).toBeDefined()
    const wrongs: unknown[] = [{}, [], 1.5, -1, 'x\0', '\ud800', 'x'.repeat(9_000), '__proto__', true]
    for (const index of good.keys())
      for (const wrong of wrongs) {
        const changed = [...good]
        changed[index] = wrong
        const read = readCarried(JSON.stringify(changed))
        // A text is another text, and a flag another flag.
        const isOfKind = typeof wrong === 'string' ? wrong === '__proto__' : wrong === true && index === good.length - 2
        if (!isOfKind) expect(read, `${index} ${String(wrong)}`).toBeUndefined()
      }
    expect(readCarried(JSON.stringify([...good, 1]))).toBeUndefined()
  })

  test('is judged in linear time', () => {
    const seal = buildCarriedSeal([Buffer.alloc(32, 1)])
    const tookMs = measureThread(() => {
      for (const hostile of ['['.repeat(1 << 20), `${'a'.repeat(43)}.${'['.repeat(1 << 20)}`, '\\u'.repeat(1 << 19)]) {
        expect(seal.open(hostile)).toBeUndefined()
        expect(readCarried(hostile)).toBeUndefined()
      }
    })
    expect(tookMs).toBeLessThan(1_000)
  })
})

test('a seal opens under each key, and not when a character or the key is another one', () => {
  const [one, two] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const sealed = buildCarriedSeal([one]).seal('a text')
  expect(buildCarriedSeal([two, one]).open(sealed)).toBe('a text')
  expect(buildCarriedSeal([two]).open(sealed)).toBeUndefined()
  for (let index = 0; index < sealed.length; index += 1) {
    const changed = `${sealed.slice(0, index)}${sealed[index] === 'x' ? 'y' : 'x'}${sealed.slice(index + 1)}`
    expect(buildCarriedSeal([one]).open(changed)).toBeUndefined()
  }
  expect(() => buildCarriedSeal([])).toThrow('at least one key')
})
