import { describe, expect, test } from 'vitest'
import { createResponseFixture } from '../../../../../test/harness/fakes/saml-idp/response-fixture.ts'
import { SAML, SAMLP, signElement } from '../../../../../test/harness/fakes/saml-idp/signed-response.ts'
import { parseXml } from '../xml/parse-xml.ts'
import { checkResponseShape } from './response-shape.ts'

const fixture = await createResponseFixture()
/** A response with a signed assertion. */
const genuine = fixture.build()

function check(xml: string) {
  const document = parseXml(Buffer.from(xml), { comments: 'refuse' })
  if (typeof document === 'string') throw new Error(document)
  return checkResponseShape(document.root)
}

/** Checks the usual response after a change of its text, which must be one. */
function checkChanged(from: string | RegExp, to: string) {
  const changed = genuine.replace(from, () => to)
  expect(changed).not.toBe(genuine)
  return check(changed)
}

const STATUS = /<samlp:Status>.*<\/samlp:Status>/
const CODE = '<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"></samlp:StatusCode>'

test('the shape has what the response says of itself, and each of its signatures', () => {
  const shape = {
    inResponseTo: '_request',
    destination: fixture.wanted.recipient,
    issuer: fixture.wanted.issuer,
    isSigned: false,
    signatures: [expect.objectContaining({ name: 'Signature' })],
    assertionId: '_assertion',
  }
  expect(check(genuine)).toEqual(shape)
  const whole = check(signElement(genuine, { key: fixture.idp.key }))
  expect(whole).toEqual({ ...shape, isSigned: true, signatures: [...shape.signatures, ...shape.signatures] })
  const starts = 'signatures' in whole ? whole.signatures.map(({ start }) => start) : []
  expect(starts).toEqual(starts.toSorted((a, b) => a - b))
})

test('the destination and the issuer of a response may be missing, and an issuer with elements has no name', () => {
  expect(checkChanged(/ Destination="[^"]*"/, '')).toMatchObject({ destination: null, issuer: fixture.wanted.issuer })
  const issuer = new RegExp(`<saml:Issuer xmlns:saml="${SAML}">[^<]*</saml:Issuer>`)
  expect(checkChanged(issuer, '')).toMatchObject({ issuer: null, destination: fixture.wanted.recipient })
  expect(checkChanged(issuer, `<saml:Issuer xmlns:saml="${SAML}"><x></x></saml:Issuer>`)).toMatchObject({ issuer: '' })
})

describe('another document is no response', () => {
  test('by its name, its namespace or its version', () => {
    expect(check(fixture.assertion())).toEqual({ refusal: 'not_a_response', detail: 'Assertion' })
    expect(checkChanged(`xmlns:samlp="${SAMLP}"`, 'xmlns:samlp="urn:x"')).toEqual({
      refusal: 'not_a_response',
      detail: 'Response',
    })
    const version = { refusal: 'not_a_response', detail: 'Version' }
    expect(checkChanged(/ Version="2.0"><saml:Issuer/, ' Version="1.1"><saml:Issuer')).toEqual(version)
    expect(checkChanged(/ Version="2.0"><saml:Issuer/, '><saml:Issuer')).toEqual(version)
  })

  test.each([
    ['no status', ''],
    ['two', `<samlp:Status>${CODE}</samlp:Status><samlp:Status>${CODE}</samlp:Status>`],
    ['one without a code', '<samlp:Status></samlp:Status>'],
    ['one with two codes', `<samlp:Status>${CODE}${CODE}</samlp:Status>`],
  ])('by its status: %s', (_what, status) => {
    expect(checkChanged(STATUS, status)).toEqual({ refusal: 'not_a_response', detail: 'Status' })
  })
})

test.each([
  ['Value="urn:x:status:Requester"', '', 'Requester'],
  ['Value="urn:x:status:Responder"', '<samlp:StatusCode Value="urn:x:status:AuthnFailed"/>', 'Responder: AuthnFailed'],
  ['Value="Responder"', '<samlp:StatusCode/>', 'Responder'],
  ['', '', ''],
])('a refusal of the identity provider has its words: %s %s', (value, nested, detail) => {
  const status = `<samlp:Status><samlp:StatusCode ${value}>${nested}</samlp:StatusCode></samlp:Status>`
  expect(checkChanged(STATUS, status)).toEqual({ refusal: 'idp_refused', detail })
})

describe('an assertion', () => {
  test('is there once, as a child of the response', () => {
    expect(check(fixture.response(''))).toEqual({ refusal: 'assertion_missing', detail: null })
    const both = fixture.response(fixture.assertion() + fixture.assertion({ id: '_other' }))
    expect(check(both)).toEqual({ refusal: 'assertion_repeated', detail: null })
    const more = `<samlp:Extensions>${fixture.assertion()}</samlp:Extensions>`
    expect(check(fixture.response('', { more }))).toEqual({ refusal: 'unexpected_element', detail: 'Assertion' })
    expect(checkChanged(`<saml:Assertion xmlns:saml="${SAML}"`, '<saml:Assertion xmlns:saml="urn:x"')).toEqual({
      refusal: 'unexpected_element',
      detail: 'Assertion',
    })
  })

  test('is not encrypted, in any namespace', () => {
    const encrypted = { refusal: 'assertion_encrypted', detail: null }
    expect(check(fixture.response('<EncryptedAssertion/>'))).toEqual(encrypted)
    expect(check(fixture.response(fixture.assertion({ more: '<EncryptedAssertion/>' })))).toEqual(encrypted)
  })

  test('has a signature and an id', () => {
    expect(check(fixture.response(fixture.assertion()))).toEqual({ refusal: 'assertion_unsigned', detail: null })
    expect(checkChanged(' ID="_assertion"', '')).toEqual({ refusal: 'signature_form', detail: 'ID' })
  })

  test('answers a request', () => {
    expect(checkChanged(' InResponseTo="_request"', '')).toEqual({ refusal: 'unsolicited', detail: null })
  })
})

describe('an element that stands where it must not is refused by its name', () => {
  test.each([
    ['in the response', '</samlp:Status>', '</samlp:Status><samlp:Extensions/>', 'Extensions'],
    ['in the assertion', '</saml:Subject>', '</saml:Subject><saml:Advice/>', 'Advice'],
    ['a response in it', '</saml:AttributeValue>', '<samlp:Response/></saml:AttributeValue>', 'Response'],
    ['a response of another namespace', '</saml:Subject>', '<Response/></saml:Subject>', 'Response'],
    ['a signature deep in it', '</saml:Subject>', '<Signature/></saml:Subject>', 'Signature'],
    ['a signature of another namespace', '</saml:Subject>', '</saml:Subject><Signature/>', 'Signature'],
  ])('%s', (_what, from, to, detail) => {
    expect(checkChanged(from, to)).toEqual({ refusal: 'unexpected_element', detail })
  })
})

describe('an id', () => {
  test.each(['ID', 'Id', 'id', 'xml:id', 'samlp:iD'])('stands there once, as %s too', (name) => {
    expect(checkChanged('<samlp:Status>', `<samlp:Status ${name}="_response">`)).toEqual({
      refusal: 'id_repeated',
      detail: null,
    })
    expect(checkChanged('<samlp:Status>', `<samlp:Status ${name}="_status">`)).toMatchObject({
      issuer: expect.anything(),
    })
  })

  test.each(['Grid', 'samlp:grid'])('is no other attribute such as %s', (name) => {
    expect(checkChanged('<samlp:Status>', `<samlp:Status ${name}="_response">`)).toMatchObject({
      assertionId: '_assertion',
    })
  })
})

test('a second signature of the same element is refused', () => {
  const signed = signElement(genuine, { key: fixture.idp.key })
  const twice = { refusal: 'signature_form', detail: 'Signature' }
  expect(check(signElement(signed, { key: fixture.idp.key }))).toEqual(twice)
  const [signature] = /<ds:Signature .*<\/ds:Signature>/.exec(genuine)!
  expect(checkChanged(signature, signature + signature)).toEqual(twice)
})
