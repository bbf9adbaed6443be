import { beforeAll, describe, expect, test } from 'vitest'
import {
  createResponseFixture,
  type ResponseFixture,
} from '../../../../../test/harness/fakes/saml-idp/response-fixture.ts'
import { createSamlKey } from '../../../../../test/harness/fakes/saml-idp/saml-key.ts'
import {
  buildSignature,
  DS,
  placeSignature,
  SAML,
  SAMLP,
  TRANSFORMS,
} from '../../../../../test/harness/fakes/saml-idp/signed-response.ts'

/*
 * Responses with a genuine signature of the identity provider, around which an attacker has changed the document
 * (Somorovsky et al., On Breaking SAML, USENIX Security 2012; the advisories of SAML libraries of 2024 and 2025).
 */

let fixture: ResponseFixture
/** What the attacker has: an assertion about itself, its signature, and both together. */
let own: { plain: string; signature: string; signed: string }
/** What the attacker wants to be read. */
let evil: string
beforeAll(async () => {
  fixture = await createResponseFixture()
  const plain = fixture.assertion()
  const signature = buildSignature(plain, { key: fixture.idp.key })
  own = { plain, signature, signed: placeSignature(plain, signature) }
  evil = fixture.assertion({ id: '_evil', nameId: 'admin', attributes: { email: 'admin@example.com' } })
})

const inside = (xml: string, what: string, tag = '</saml:Assertion>') => xml.replace(tag, () => `${what}${tag}`)
const object = (what: string) => `<ds:Object>${what}</ds:Object>`

describe('a signed assertion wrapped', () => {
  const cases: Record<string, [string, () => string]> = {
    'beside another one, which comes first (XSW3)': ['assertion_repeated', () => fixture.response(evil + own.signed)],
    'beside another one, which comes last': ['assertion_repeated', () => fixture.response(own.signed + evil)],
    'as a child of another one (XSW4)': ['assertion_repeated', () => fixture.response(inside(evil, own.signed))],
    'beside another one that has its signature (XSW5)': [
      'assertion_repeated',
      () => fixture.response(placeSignature(evil, own.signature) + own.plain),
    ],
    'in its signature, which another one has (XSW6)': [
      'assertion_repeated',
      () => fixture.response(placeSignature(evil, inside(own.signature, own.plain, '</ds:Signature>'))),
    ],
    'beside extensions with another one (XSW7)': [
      'assertion_repeated',
      () => fixture.response(own.signed, { more: `<samlp:Extensions>${evil}</samlp:Extensions>` }),
    ],
    'in an object of its signature, which another one has (XSW8)': [
      'assertion_repeated',
      () => fixture.response(placeSignature(evil, inside(own.signature, object(own.plain), '</ds:Signature>'))),
    ],
    'in extensions, beside another one': [
      'assertion_repeated',
      () => fixture.response(evil, { more: `<samlp:Extensions>${own.signed}</samlp:Extensions>` }),
    ],
    'with its id on another one': [
      'assertion_repeated',
      () => fixture.response(own.signed + evil.replace('_evil', '_assertion')),
    ],
    'in the advice of another one': [
      'assertion_repeated',
      () => fixture.response(inside(evil, `<saml:Advice>${own.signed}</saml:Advice>`)),
    ],
    'in a response within a response': [
      'assertion_repeated',
      () => fixture.response(evil + fixture.response(own.signed)),
    ],
    'in an attribute of another one, in another namespace': [
      'assertion_repeated',
      () =>
        fixture.response(
          inside(evil, `<saml:AttributeValue>${own.signed}</saml:AttributeValue>`, '</saml:AttributeStatement>'),
        ),
    ],
  }
  test.each(Object.entries(cases))('%s, is refused', async (_what, [refusal, build]) => {
    expect(await fixture.verify(build())).toMatchObject({ refusal })
  })
})

describe('a signed response wrapped', () => {
  const signed = () => {
    const plain = fixture.response(own.signed)
    return { plain, signature: buildSignature(plain, { key: fixture.idp.key }) }
  }
  const forged = () => fixture.response(evil, { id: '_evil_response' })

  test('in an object of its signature, which another response has, is refused (XSW1)', async () => {
    const { plain, signature } = signed()
    const xml = placeSignature(forged(), inside(signature, object(plain), '</ds:Signature>'))
    expect(await fixture.verify(xml)).toMatchObject({ refusal: 'assertion_repeated' })
  })

  test('before its signature, which another response has, is refused (XSW2)', async () => {
    const { plain, signature } = signed()
    expect(await fixture.verify(placeSignature(forged(), plain + signature))).toMatchObject({
      refusal: 'assertion_repeated',
    })
  })

  test('is no proof of an assertion without a signature of its own', async () => {
    const plain = fixture.response(own.plain)
    const xml = placeSignature(plain, buildSignature(plain, { key: fixture.idp.key }))
    expect(await fixture.verify(xml)).toMatchObject({ refusal: 'assertion_unsigned' })
  })
})

describe('a signature', () => {
  const resign = (change: Parameters<ResponseFixture['signed']>[1]) =>
    fixture.response(fixture.signed(own.plain, change))
  const cases: Record<string, [string, () => string | Promise<string>]> = {
    'is missing': ['assertion_unsigned', () => fixture.response(own.plain)],
    'is of another key, whose certificate it brings': [
      'signature_invalid',
      async () => {
        const { key, certificate } = await createSamlKey()
        const base64 = certificate.replace(/-----[A-Z ]+-----|\n/g, '')
        const more = `<ds:KeyInfo><ds:X509Data><ds:X509Certificate>${base64}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>`
        return resign({ key, more })
      },
    ],
    'is of another assertion': ['signature_form', () => fixture.response(placeSignature(evil, own.signature))],
    'is of another assertion with the same id': [
      'signature_invalid',
      () => fixture.response(placeSignature(evil.replace('_evil', '_assertion'), own.signature)),
    ],
    'is by SHA-1': [
      'algorithm_not_allowed',
      () => resign({ method: `${DS}rsa-sha1`, digest: `${DS}sha1`, hash: 'sha1' }),
    ],
    'has a digest by SHA-1': ['algorithm_not_allowed', () => resign({ digest: `${DS}sha1` })],
    'is an HMAC with the certificate as its key': ['algorithm_not_allowed', () => resign({ method: `${DS}hmac-sha1` })],
    'is canonical with comments': [
      'algorithm_not_allowed',
      () => resign({ canonicalization: 'http://www.w3.org/2001/10/xml-exc-c14n#WithComments' }),
    ],
    'is canonical by another algorithm': [
      'algorithm_not_allowed',
      () => resign({ canonicalization: 'http://www.w3.org/TR/2001/REC-xml-c14n-20010315' }),
    ],
    'has a transform by a style sheet': [
      'signature_form',
      () =>
        resign({
          transforms: `<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"><xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/Transform"></xsl:stylesheet></ds:Transform>${TRANSFORMS}`,
        }),
    ],
    'has a transform by an XPath': [
      'signature_form',
      () =>
        resign({
          transforms: `<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><ds:XPath>1</ds:XPath></ds:Transform>`,
        }),
    ],
    'has no transform': ['signature_form', () => resign({ transforms: '' })],
    'has a transform twice': ['signature_form', () => resign({ transforms: TRANSFORMS + TRANSFORMS })],
    'has an object': ['signature_form', () => resign({ more: object('') })],
    'stands twice': ['signature_form', () => fixture.response(placeSignature(own.signed, own.signature))],
    'stands deep in its assertion': [
      'unexpected_element',
      () => fixture.response(inside(own.plain, own.signature, '</saml:Subject>')),
    ],
    'is of two references': [
      'signature_form',
      () =>
        fixture.response(own.signed).replace(/<ds:Reference .*<\/ds:Reference>/, (reference) => reference + reference),
    ],
    'is of the whole document': [
      'signature_form',
      () => fixture.response(own.signed).replace('URI="#_assertion"', 'URI=""'),
    ],
    'is of an outer document': [
      'signature_form',
      () => fixture.response(own.signed).replace('URI="#_assertion"', 'URI="https://evil.example/a.xml"'),
    ],
    'has two lists of what it signs (CVE-2025-29775)': [
      'signature_form',
      () => fixture.response(own.signed).replace(/<ds:SignedInfo>.*<\/ds:SignedInfo>/, (info) => info + info),
    ],
    'has two digests': [
      'signature_form',
      () => fixture.response(own.signed).replace(/<ds:DigestValue>.*<\/ds:DigestValue>/, (digest) => digest + digest),
    ],
    'has a comment in its digest (CVE-2025-29774)': [
      'comment_not_allowed',
      () => fixture.response(own.signed).replace('<ds:DigestValue>', '<ds:DigestValue><!--x-->'),
    ],
    'has an element in its digest': [
      'signature_form',
      () => fixture.response(own.signed).replace('<ds:DigestValue>', '<ds:DigestValue><x></x>'),
    ],
    'has a comment in its list': [
      'comment_not_allowed',
      () => fixture.response(own.signed).replace('<ds:SignedInfo>', '<ds:SignedInfo><!--x-->'),
    ],
    'has a quote in the id of its assertion': [
      'signature_form',
      () => {
        const plain = fixture.assertion({ id: "_a' or '1'='1" })
        return fixture.response(fixture.signed(plain))
      },
    ],
    'is in another namespace': [
      'unexpected_element',
      () => fixture.response(inside(own.signed, '<x:Signature xmlns:x="urn:x"></x:Signature>')),
    ],
  }
  test.each(Object.entries(cases))('that %s proves nothing', async (_what, [refusal, build]) => {
    expect(await fixture.verify(await build())).toMatchObject({ refusal })
  })
})

describe('an id', () => {
  test.each(['ID', 'Id', 'id', 'xml:id'])('that is repeated as %s is refused', async (name) => {
    const xml = fixture.response(own.signed).replace('<samlp:Status>', `<samlp:Status ${name}="_assertion">`)
    expect(await fixture.verify(xml)).toMatchObject({ refusal: 'id_repeated' })
  })
})

describe('an assertion', () => {
  test('of another namespace is none', async () => {
    const xml = fixture.response(own.signed).replace(`xmlns:saml="${SAML}" ID`, 'xmlns:saml="urn:evil" ID')
    expect(await fixture.verify(xml)).toMatchObject({ refusal: 'unexpected_element' })
  })

  test('in the default namespace of another prefix is the same, when the signature covers it', async () => {
    const renamed = own.plain.replaceAll('saml:', '').replace('xmlns:saml', 'xmlns').replace('xmlns="', 'xmlns="')
    const plain = renamed.includes('xmlns="') ? renamed : renamed.replace('<Assertion ', `<Assertion xmlns="${SAML}" `)
    const xml = fixture.response(
      plain.replace('</Issuer>', () => `</Issuer>${buildSignature(plain, { key: fixture.idp.key })}`),
    )
    expect(await fixture.verify(xml)).toEqual(fixture.proof)
  })

  test('that is encrypted is refused with what to do', async () => {
    const encrypted = `<saml:EncryptedAssertion xmlns:saml="${SAML}"></saml:EncryptedAssertion>`
    expect(await fixture.verify(fixture.response(encrypted))).toMatchObject({ refusal: 'assertion_encrypted' })
    expect(await fixture.verify(fixture.response(own.signed + encrypted))).toMatchObject({
      refusal: 'assertion_encrypted',
    })
  })

  test('is missing', async () => {
    expect(await fixture.verify(fixture.response(''))).toMatchObject({ refusal: 'assertion_missing' })
    expect(await fixture.verify(own.signed)).toMatchObject({ refusal: 'not_a_response' })
    const logout = `<samlp:LogoutResponse xmlns:samlp="${SAMLP}" ID="_x" Version="2.0"></samlp:LogoutResponse>`
    expect(await fixture.verify(logout)).toMatchObject({ refusal: 'not_a_response' })
  })

  test('has an attribute once, so that no two readers choose another one of two', async () => {
    const twice =
      '<saml:AttributeStatement><saml:Attribute Name="email"><saml:AttributeValue>admin@example.com</saml:AttributeValue></saml:Attribute></saml:AttributeStatement>'
    expect(await fixture.try({ facts: { more: twice } })).toEqual({ refusal: 'attribute_repeated', detail: 'email' })
  })

  test('has no value with elements in it', async () => {
    const nested =
      '<saml:AttributeStatement><saml:Attribute Name="mail"><saml:AttributeValue>admin<x></x>@example.com</saml:AttributeValue></saml:Attribute></saml:AttributeStatement>'
    const attributes = { displayName: 'Ada' }
    expect(await fixture.try({ facts: { attributes, more: nested } })).toEqual({
      refusal: 'attribute_invalid',
      detail: 'mail',
    })
  })
})
