import { describe, expect, test } from 'vitest'
import { createResponseFixture } from '../../../../../test/harness/fakes/saml-idp/response-fixture.ts'
import { buildSignature, DS } from '../../../../../test/harness/fakes/saml-idp/signed-response.ts'
import { parseXml } from '../xml/parse-xml.ts'
import { checkSignatureShape } from './signature-shape.ts'

const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#'
const ENVELOPED = `${DS}enveloped-signature`

const fixture = await createResponseFixture()
/** The signature of the assertion `_assertion`. */
const genuine = buildSignature(fixture.assertion(), { key: fixture.idp.key })

function check(xml: string, id: string | undefined = '_assertion') {
  const document = parseXml(Buffer.from(xml), { comments: 'refuse' })
  if (typeof document === 'string') throw new Error(document)
  return checkSignatureShape(document.root, id)
}

/** Checks the usual signature after a change of its text, which must be one. */
function checkChanged(from: string | RegExp, to: string) {
  const changed = genuine.replace(from, () => to)
  expect(changed).not.toBe(genuine)
  return check(changed)
}

const malformed = (detail: string) => ({ refusal: 'signature_form', detail })

describe('a signature of the form', () => {
  test('is accepted, with a key behind its value, which may have elements', () => {
    expect(check(genuine)).toBeUndefined()
    const keyInfo = '<ds:KeyInfo><ds:X509Data/></ds:KeyInfo></ds:Signature>'
    expect(checkChanged('</ds:Signature>', keyInfo)).toBeUndefined()
  })

  test('may have white space in its values', () => {
    expect(checkChanged('<ds:SignatureValue>', '<ds:SignatureValue>\r\n\t ')).toBeUndefined()
  })

  test('may have one list of prefixes', () => {
    const list = (children: string, namespace = EXCLUSIVE) =>
      `<ec:InclusiveNamespaces xmlns:ec="${namespace}" PrefixList="xs">${children}</ec:InclusiveNamespaces>`
    const transform = `<ds:Transform Algorithm="${EXCLUSIVE}">`
    expect(checkChanged(transform, transform + list(''))).toBeUndefined()
    for (const children of [list('') + list(''), list('<x/>'), list('', 'urn:x'), '<x/>'])
      expect(checkChanged(transform, transform + children)).toEqual(malformed('Transforms'))
    const other = list('').replaceAll('InclusiveNamespaces', 'OtherNamespaces')
    expect(checkChanged(transform, transform + other)).toEqual(malformed('Transforms'))
  })
})

test.each(['_', 'a', `_${'x'.repeat(255)}`, 'A.b-c_9'])('an id may be %s', (id) => {
  expect(check(genuine.replace('#_assertion', `#${id}`), id)).toBeUndefined()
})

test.each(['', '9a', `_${'x'.repeat(256)}`, "_a'", '_a b', '-a'])('an id may not be %s', (id) => {
  expect(check(genuine.replace('#_assertion', `#${id}`), id)).toEqual(malformed('ID'))
})

test('an element without an id has no signature', () => {
  const document = parseXml(Buffer.from(genuine), { comments: 'refuse' })
  if (typeof document === 'string') throw new Error(document)
  expect(checkSignatureShape(document.root, undefined)).toEqual(malformed('ID'))
})

describe('a signature of another form is refused by the part', () => {
  const value = /<ds:SignatureValue>[^<]*<\/ds:SignatureValue>/
  const info = /<ds:SignedInfo>.*<\/ds:SignedInfo>/
  const digest = /<ds:DigestValue>[^<]*<\/ds:DigestValue>/
  const reference = /<ds:Reference .*<\/ds:Reference>/
  test.each<[string, string | RegExp, string, string]>([
    ['without a list', info, '', 'Signature'],
    ['without a value', value, '', 'Signature'],
    ['with an empty value', value, '<ds:SignatureValue></ds:SignatureValue>', 'Signature'],
    ['with a value that is no base64', value, '<ds:SignatureValue>a*b</ds:SignatureValue>', 'Signature'],
    ['with an element in its value', value, '<ds:SignatureValue><x/>AAAA</ds:SignatureValue>', 'Signature'],
    ['with another last part', '</ds:Signature>', '<ds:Object/></ds:Signature>', 'Signature'],
    ['with a key of another namespace', '</ds:Signature>', '<KeyInfo/></ds:Signature>', 'Signature'],
    ['with two keys', '</ds:Signature>', '<ds:KeyInfo/><ds:KeyInfo/></ds:Signature>', 'Signature'],
    ['without a reference', reference, '', 'SignedInfo'],
    [
      'with an element in its canonicalization',
      '</ds:CanonicalizationMethod>',
      '<x/></ds:CanonicalizationMethod>',
      'SignedInfo',
    ],
    ['with an element in its method', '</ds:SignatureMethod>', '<x/></ds:SignatureMethod>', 'SignedInfo'],
    ['with an attribute of a namespace in its list', '<ds:Transforms>', '<ds:Transforms ds:x="1">', 'SignedInfo'],
    ['of another element', '#_assertion', '#_other', 'Reference'],
    ['of no element', ' URI="#_assertion"', '', 'Reference'],
    ['without a digest', digest, '', 'Reference'],
    ['with an empty digest', digest, '<ds:DigestValue></ds:DigestValue>', 'Reference'],
    ['with an element in its method of digests', '</ds:DigestMethod>', '<x/></ds:DigestMethod>', 'Reference'],
    ['without transforms', /<ds:Transform .*<\/ds:Transform>/, '', 'Transforms'],
    ['with one transform', /<ds:Transform Algorithm="[^"]*enveloped-signature"><\/ds:Transform>/, '', 'Transforms'],
    ['with an element in its first transform', 'enveloped-signature">', 'enveloped-signature"><x/>', 'Transforms'],
    ['with another first transform', `"${ENVELOPED}"`, `"${EXCLUSIVE}"`, 'Transforms'],
    [
      'with another second transform',
      `<ds:Transform Algorithm="${EXCLUSIVE}">`,
      `<ds:Transform Algorithm="${ENVELOPED}">`,
      'Transforms',
    ],
  ])('%s', (_what, from, to, detail) => {
    expect(checkChanged(from, to)).toEqual(malformed(detail))
  })
})

describe('an algorithm that is not allowed is named', () => {
  test.each([
    ['canonicalization', `<ds:CanonicalizationMethod Algorithm="${EXCLUSIVE}"`, 'CanonicalizationMethod'],
    ['signature', /<ds:SignatureMethod Algorithm="[^"]*"/, 'SignatureMethod'],
    ['digest', /<ds:DigestMethod Algorithm="[^"]*"/, 'DigestMethod'],
  ])('of the %s', (_what, from, name) => {
    expect(checkChanged(from, `<ds:${name} Algorithm="urn:x"`)).toEqual({
      refusal: 'algorithm_not_allowed',
      detail: 'urn:x',
    })
    expect(checkChanged(from, `<ds:${name}`)).toEqual({ refusal: 'algorithm_not_allowed', detail: '' })
  })
})
