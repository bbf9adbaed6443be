import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  createResponseFixture,
  judgeResponse,
  type ResponseFixture,
} from '../../../../../test/harness/fakes/saml-idp/response-fixture.ts'
import { encodeResponse, SAML, SAMLP, signElement } from '../../../../../test/harness/fakes/saml-idp/signed-response.ts'
import { measureProcess } from '../../../../../test/harness/run/linear.ts'
import { RESPONSE_LIMIT } from './verify-response.ts'

let fixture: ResponseFixture
let genuine: { assertionSigned: string; bothSigned: string }
let evil: string
beforeAll(async () => {
  fixture = await createResponseFixture()
  const assertionSigned = fixture.build()
  genuine = { assertionSigned, bothSigned: signElement(assertionSigned, { key: fixture.idp.key }) }
  evil = fixture.assertion({ id: '_evil', nameId: 'admin', attributes: { email: 'admin@example.com' } })
})

/** The parser of the library writes what it finds odd to the console. Nothing odd reaches it. */
const written = (['log', 'info', 'warn', 'error'] as const).map((method) => vi.spyOn(console, method))
afterAll(() => {
  for (const spy of written) expect(spy.mock.calls).toEqual([])
})

/** Whatever was done to a signed response: it is refused, or proves the same person. */
async function expectHarmless(xml: string): Promise<boolean> {
  const found = await fixture.verify(xml)
  if ('refusal' in found) return false
  expect(found).toEqual(fixture.proof)
  return true
}

/** The tags and texts of a document. */
const tokensOf = (xml: string) => xml.split(/(?=<)|(?<=>)/)

describe('a signed response that is changed', () => {
  const kinds = fc.constantFrom('assertionSigned' as const, 'bothSigned' as const)

  test('in any of its characters proves the same person or none', async () => {
    const added = fc.constantFrom(
      '',
      '<',
      '>',
      '&',
      '"',
      ' ',
      '\n',
      '\r',
      '\u2028',
      '&#32;',
      '&#13;',
      '<!---->',
      '<?x?>',
      'x',
    )
    let harmless = 0
    const change = fc.record({ kind: kinds, at: fc.nat(), length: fc.nat(3), added })
    await fc.assert(
      fc.asyncProperty(change, async ({ kind, at, length, added }) => {
        const xml = genuine[kind]
        const start = at % xml.length
        if (await expectHarmless(xml.slice(0, start) + added + xml.slice(start + length))) harmless += 1
      }),
      { numRuns: 700 },
    )
    // Some changes are none (white space between elements of the response): else every document would be refused.
    expect(harmless).toBeGreaterThan(0)
  })

  test('by parts that are moved, repeated, removed or added proves the same person or none', async () => {
    const extra = () => [evil, '<samlp:Extensions>', '</samlp:Extensions>', '<ds:Object>', '</ds:Object>', 'admin']
    const step = fc.record({
      what: fc.constantFrom('copy', 'move', 'remove', 'add'),
      from: fc.nat(),
      length: fc.integer({ min: 1, max: 60 }),
      to: fc.nat(),
      extra: fc.nat(5),
    })
    await fc.assert(
      fc.asyncProperty(kinds, fc.array(step, { minLength: 1, maxLength: 3 }), async (kind, steps) => {
        let tokens = tokensOf(genuine[kind])
        for (const { what, from, length, to, extra: which } of steps) {
          const part = tokens.slice(from % tokens.length, (from % tokens.length) + length)
          if (what === 'move' || what === 'remove') tokens.splice(from % tokens.length, length)
          if (tokens.length === 0) tokens = ['']
          if (what === 'copy' || what === 'move') tokens.splice(to % tokens.length, 0, ...part)
          if (what === 'add') tokens.splice(to % tokens.length, 0, extra()[which]!)
        }
        await expectHarmless(tokens.join(''))
      }),
      { numRuns: 900 },
    )
  })

  test('by whole elements that are put elsewhere proves the same person or none', async () => {
    const elements = ['Assertion', 'Signature', 'Subject', 'NameID', 'Conditions', 'AttributeStatement', 'SignedInfo']
    const choice = fc.record({ kind: kinds, name: fc.constantFrom(...elements), to: fc.nat(), keep: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(choice, async ({ kind, name, to, keep }) => {
        const xml = genuine[kind]
        const found = new RegExp(`<(\\w+):${name}[ >].*</\\1:${name}>`).exec(xml)?.[0] ?? ''
        const rest = keep ? xml : xml.replace(found, '')
        const tokens = tokensOf(rest)
        tokens.splice(to % tokens.length, 0, found.replace('u-4711', 'admin').replace('_assertion', '_evil'))
        await expectHarmless(tokens.join(''))
      }),
      { numRuns: 400 },
    )
  })
})

describe('a hostile response', () => {
  const wrap = (inner: string) =>
    `<samlp:Response xmlns:samlp="${SAMLP}" xmlns:saml="${SAML}" ID="_r" InResponseTo="_request" Version="2.0"><samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>${inner}</samlp:Response>`
  const fill = (piece: string, size = 250_000) => piece.repeat(Math.floor(size / piece.length))
  const documents: Record<string, () => string> = {
    'open elements': () => fill('<a>'),
    'empty elements': () => wrap(fill('<a/>')),
    attributes: () => wrap(fill(`<a ${Array.from({ length: 32 }, (_, at) => `a${at}=""`).join(' ')}/>`)),
    'declarations of namespaces': () =>
      wrap(fill(`<a ${Array.from({ length: 31 }, (_, at) => `xmlns:n${at}="u"`).join(' ')}/>`)),
    references: () => wrap(fill('&amp;')),
    'open references': () => wrap(fill('&')),
    'references of no end': () => wrap(fill('&#1111111')),
    comments: () => wrap(fill('<!-- -')),
    'line ends': () => fill('\r\n'),
    'carriage returns': () => fill('\r'),
    quotes: () => `<a b="${fill("'")}`,
    'a document type with a bomb': () =>
      `<!DOCTYPE a [<!ENTITY a "${fill('x', 1000)}">${fill('<!ENTITY b "&a;&a;&a;">')}]><a>&b;</a>`,
    'a long name': () => `<${fill('a')}/>`,
    'a long name of a prefix': () => `<${fill('a')}:a/>`,
    'a long status': () => wrap('').replace('status:Success', fill(':a')),
  }
  test.each(Object.entries(documents))('of %s is refused at once', async (_what, build) => {
    const encoded = encodeResponse(build())
    const tookMs = await measureProcess(async () => {
      for (let round = 0; round < 2; round += 1)
        expect(await judgeResponse(encoded, fixture.wanted)).toHaveProperty('refusal')
    })
    expect(tookMs / 2).toBeLessThan(2_000)
  })

  test.each([
    ['line ends in base64', '\r\n'],
    ['signs of its end', '='],
    ['no base64', '%'],
    ['base64 of nothing', 'A'],
  ])('with %s, of up to a MiB, is refused at once', async (_what, piece) => {
    const tookMs = await measureProcess(async () => {
      for (const size of [RESPONSE_LIMIT - 10, 1_048_576])
        expect(await judgeResponse(`${piece.repeat(size / piece.length)}!`, fixture.wanted)).toHaveProperty('refusal')
    })
    expect(tookMs).toBeLessThan(4_000)
  })

  test('of the largest form that is verified takes bounded time, with four certificates', async () => {
    const groups = Array.from({ length: 200 }, (_, at) => `${at}-${'g'.repeat(250)}`)
    const more = Array.from(
      { length: 500 },
      (_, at) =>
        `<saml:Attribute Name="a${at}"><saml:AttributeValue>${'x'.repeat(40)}</saml:AttributeValue></saml:Attribute>`,
    )
    const facts = {
      attributes: { email: 'ada@example.com', groups },
      more: `<saml:AttributeStatement>${more.join('')}</saml:AttributeStatement>`,
    }
    const xml = signElement(fixture.build({ facts }), { key: fixture.idp.key })
    const others = await Promise.all([1, 2, 3].map(() => createResponseFixture()))
    const certificates = [...others.map(({ idp }) => idp.certificate), fixture.idp.certificate]
    const tookMs = await measureProcess(async () => {
      expect(await fixture.verify(xml, { certificates })).toMatchObject({ person: { groups: { length: 200 } } })
    })
    expect(tookMs).toBeLessThan(10_000)
  })
})
