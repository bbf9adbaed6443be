import { sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  createResponseFixture,
  later,
  NOW,
  type ResponseChange,
} from '../../../../../test/harness/fakes/saml-idp/response-fixture.ts'
import { createSamlKey } from '../../../../../test/harness/fakes/saml-idp/saml-key.ts'
import {
  buildSignature,
  DS,
  placeSignature,
  signElement,
} from '../../../../../test/harness/fakes/saml-idp/signed-response.ts'
import { XML_LIMITS } from '../xml/xml-fault.ts'
import { RESPONSE_LIMIT, readResponse } from './verify-response.ts'

const EMAIL_FORMAT = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress'
const TRANSIENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient'

const fixture = await createResponseFixture()

describe('a signed response', () => {
  test('proves the person that it describes', async () => {
    expect(await fixture.try({})).toEqual(fixture.proof)
  })

  test('may be signed as a whole too, and is then verified as a whole too', async () => {
    const { key } = fixture.idp
    expect(await fixture.verify(signElement(fixture.build(), { key }))).toEqual(fixture.proof)
    const other = await createSamlKey()
    expect(await fixture.verify(signElement(fixture.build(), { key: other.key }))).toEqual({
      refusal: 'signature_invalid',
      detail: null,
    })
    const changed = signElement(fixture.build(), { key }).replace('ID="_response"', 'ID="_changed"')
    expect(await fixture.verify(changed)).toMatchObject({ refusal: 'signature_form' })
  })

  test('is verified with each of the certificates, so that a new one can be added before the old one ends', async () => {
    const other = await createSamlKey()
    const certificates = [other.certificate, fixture.idp.certificate]
    expect(await fixture.try({ wanted: { certificates } })).toEqual(fixture.proof)
    expect(await fixture.try({ wanted: { certificates: [other.certificate] } })).toMatchObject({
      refusal: 'signature_invalid',
    })
  })

  test('of SHA-512 proves as well', async () => {
    const signing = {
      method: 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512',
      digest: 'http://www.w3.org/2001/04/xmlenc#sha512',
      hash: 'sha512',
    }
    expect(await fixture.try({ signing })).toEqual(fixture.proof)
  })

  test('may have the prefix list, the certificate and the line ends that identity providers write', async () => {
    const exclusive = 'http://www.w3.org/2001/10/xml-exc-c14n#'
    const prefixes = `<ec:InclusiveNamespaces xmlns:ec="${exclusive}" PrefixList="xs"></ec:InclusiveNamespaces>`
    const transforms = `<ds:Transform Algorithm="${DS}enveloped-signature"></ds:Transform><ds:Transform Algorithm="${exclusive}">${prefixes}</ds:Transform>`
    const keyInfo = `<ds:KeyInfo><ds:X509Data><ds:X509Certificate>${'A'.repeat(64)}&#13;\r\n</ds:X509Certificate></ds:X509Data></ds:KeyInfo>`
    const xml = fixture.build({ signing: { transforms, more: keyInfo } })
    expect(await fixture.verify(`<?xml version="1.0" encoding="UTF-8"?>\r\n${xml}\r\n`)).toEqual(fixture.proof)
  })

  test.each<[string, (xml: string) => string]>([
    ['elements without content', (xml) => xml.replace(/<([a-z]+:[A-Za-z]+)([^<>]*)><\/\1>/g, '<$1$2/>')],
    ['other quotes', (xml) => xml.replace(/ (Algorithm|URI|Version|ID|Name)="([^"]*)"/g, " $1='$2'")],
    ['space in its tags', (xml) => xml.replace(/ (Algorithm|URI|Version)="/g, '\n  $1 = "').replaceAll('/>', ' />')],
    [
      'references',
      (xml) => xml.replace(/Algorithm="http:/g, 'Algorithm="&#104;ttp&#x3A;').replace('>u-4711<', '>&#117;-4711<'),
    ],
    [
      'another order of attributes',
      (xml) => xml.replace(/ (ID="[^"]*")( IssueInstant="[^"]*") (Version="2.0")/g, ' $3$2 $1'),
    ],
    ['declarations that nothing uses', (xml) => xml.replace('<saml:Subject>', '<saml:Subject xmlns:unused="urn:x">')],
    [
      'the declaration of its prefix outside',
      (xml) => xml.replace('<samlp:Response ', `<samlp:Response xmlns:ds="${DS}" `),
    ],
  ])('written with %s is the same', async (_what, rewrite) => {
    const { key } = fixture.idp
    for (const xml of [fixture.build(), signElement(fixture.build(), { key })]) {
      expect(rewrite(xml)).not.toBe(xml)
      expect(await fixture.verify(rewrite(xml))).toEqual(fixture.proof)
    }
  })

  test('has white space in the list of its signature only where that was signed', async () => {
    const spaced = fixture.build().replace('<ds:SignedInfo>', '<ds:SignedInfo>\n')
    expect(await fixture.verify(spaced)).toMatchObject({ refusal: 'signature_invalid' })
  })

  test('may have a signature without a prefix', async () => {
    const plain = fixture.assertion()
    const list = buildSignature(plain, { key: fixture.idp.key })
    const renamed = list.replaceAll('ds:', '').replace('xmlns:ds=', 'xmlns=')
    // Other names are signed by another value.
    expect(await fixture.verify(fixture.response(placeSignature(plain, renamed)))).toMatchObject({
      refusal: 'signature_invalid',
    })
    const info = /<SignedInfo>.*<\/SignedInfo>/.exec(renamed)?.[0] ?? ''
    const signed = sign('sha256', Buffer.from(info.replace('>', ` xmlns="${DS}">`)), fixture.idp.key)
    const right = renamed.replace(/<SignatureValue>[^<]*/, `<SignatureValue>${signed.toString('base64')}`)
    expect(await fixture.verify(fixture.response(placeSignature(plain, right)))).toEqual(fixture.proof)
  })

  test('may leave out the destination and the issuer of an unsigned response', async () => {
    const xml = fixture.build({ response: { destination: null }, facts: { sessionNotOnOrAfter: later(3600) } })
    expect(await fixture.verify(xml)).toEqual(fixture.proof)
    const [head, issuer] = [xml.indexOf('<saml:Issuer'), xml.indexOf('<samlp:Status')]
    expect(await fixture.verify(xml.slice(0, head) + xml.slice(issuer))).toMatchObject({ person: fixture.proof.person })
  })
})

describe('a response is refused', () => {
  const cases: Record<string, [string, ResponseChange]> = {
    'that nobody asked for': ['unsolicited', { response: { inResponseTo: null } }],
    'whose assertion nobody asked for': ['unsolicited', { facts: { inResponseTo: null } }],
    'to another request': ['other_request', { response: { inResponseTo: '_other' } }],
    'whose assertion answers another request': ['other_request', { facts: { inResponseTo: '_other' } }],
    'for another audience': ['other_audience', { facts: { audience: 'https://app.example/saml/8' } }],
    'for no audience': ['other_audience', { facts: { audience: null } }],
    'for our audience and also only for another': [
      'other_audience',
      {
        facts: {
          moreConditions:
            '<saml:AudienceRestriction><saml:Audience>https://other.example</saml:Audience></saml:AudienceRestriction>',
        },
      },
    ],
    'for another recipient': ['other_recipient', { facts: { recipient: 'https://app.example/saml/8/acs' } }],
    'for another destination': ['other_recipient', { response: { destination: 'https://app.example/saml/8/acs' } }],
    'of another issuer': ['issuer_unknown', { facts: { issuer: 'https://evil.example' } }],
    'whose outer issuer is another': ['issuer_unknown', { response: { issuer: 'https://evil.example' } }],
    'that is expired': ['expired', { wanted: { now: later(360) } }],
    'that is not yet valid': ['not_yet_valid', { wanted: { now: later(-91) } }],
    'that was issued in the future': ['not_yet_valid', { facts: { issuedAt: later(61) } }],
    'whose session has ended': ['expired', { facts: { sessionNotOnOrAfter: later(-60) } }],
    'that is valid for longer than a day': ['lifetime_too_long', { facts: { notOnOrAfter: later(86_400) } }],
    'with an unknown condition': [
      'unexpected_element',
      { facts: { moreConditions: '<saml:Condition></saml:Condition>' } },
    ],
    'with a subject of one session': ['subject_transient', { facts: { nameIdFormat: TRANSIENT } }],
    'with an empty subject': ['subject_missing', { facts: { nameId: ' ' } }],
    'with two subjects': ['subject_missing', { facts: { moreSubject: '<saml:NameID>other</saml:NameID>' } }],
    'with too long a subject': ['subject_missing', { facts: { nameId: 'x'.repeat(257) } }],
    'with a control character in its subject': ['subject_missing', { facts: { nameId: 'admin\u0090' } }],
    'without an e-mail': ['email_missing', { facts: { attributes: {} } }],
    'with two e-mails': [
      'attribute_repeated',
      { facts: { attributes: { email: ['a@example.com', 'b@example.com'] } } },
    ],
    'with more than 200 groups': [
      'attribute_invalid',
      { facts: { attributes: { email: 'a@example.com', groups: Array.from({ length: 201 }, (_, i) => `g${i}`) } } },
    ],
    'with a group of more than 256 characters': [
      'attribute_invalid',
      { facts: { attributes: { email: 'a@example.com', groups: ['g'.repeat(257)] } } },
    ],
  }
  test.each(Object.entries(cases))('%s', async (_what, [refusal, change]) => {
    expect(await fixture.try(change)).toMatchObject({ refusal })
  })

  test('at the first instant after its end, with a minute for the clocks', async () => {
    expect(await fixture.try({ wanted: { now: later(359.999) } })).toEqual(fixture.proof)
    expect(await fixture.try({ wanted: { now: later(360) } })).toMatchObject({ refusal: 'expired' })
    const early = { facts: { issuedAt: later(-90) } }
    expect(await fixture.try({ ...early, wanted: { now: later(-90) } })).toEqual(fixture.proof)
    expect(await fixture.try({ ...early, wanted: { now: later(-90.001) } })).toMatchObject({ refusal: 'not_yet_valid' })
  })

  test('by the identity provider itself, with its words', async () => {
    const status = `Responder"><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:AuthnFailed"></samlp:StatusCode></samlp:StatusCode><samlp:StatusCode Value="x`
    const nested = fixture
      .response('')
      .replace('status:Success"></samlp:StatusCode>', `status:${status}"></samlp:StatusCode>`)
    expect(await fixture.verify(nested)).toEqual({ refusal: 'not_a_response', detail: 'Status' })
    const refused = fixture.response('', { status: 'Requester' })
    expect(await fixture.verify(refused)).toEqual({ refusal: 'idp_refused', detail: 'Requester' })
  })

  test('with a detail that is safe in a log line', async () => {
    const audience = `https://evil.example/\u00e9${'x'.repeat(500)}`
    const refused = await fixture.try({ facts: { audience } })
    expect(refused).toEqual({ refusal: 'other_audience', detail: `https://evil.example/?${'x'.repeat(178)}` })
  })
})

describe('the person', () => {
  const attributesOf = async (attributes: Record<string, string | string[]>, change: ResponseChange = {}) => {
    const proof = await fixture.try({ ...change, facts: { attributes, ...change.facts } })
    return 'person' in proof ? proof.person : proof.refusal
  }

  test('has the attributes that the connection names, and no other', async () => {
    const attributes = { 'urn:mail': 'ada@example.com', email: 'eve@example.com', cn: 'Ada', memberOf: 'staff' }
    const names = { email: 'urn:mail', name: 'cn', groups: 'memberOf' }
    expect(await attributesOf(attributes, { wanted: { attributes: names } })).toEqual({
      subject: 'u-4711',
      email: 'ada@example.com',
      name: 'Ada',
      groups: ['staff'],
    })
    expect(await attributesOf({ email: 'eve@example.com' }, { wanted: { attributes: names } })).toBe('email_missing')
  })

  test('has the e-mail of its name id only when that says it is one, and the connection names no attribute', async () => {
    const facts = { nameId: 'ada@example.com', nameIdFormat: EMAIL_FORMAT }
    expect(await attributesOf({}, { facts })).toMatchObject({ subject: 'ada@example.com', email: 'ada@example.com' })
    const names = { email: 'mail', name: null, groups: null }
    expect(await attributesOf({}, { facts, wanted: { attributes: names } })).toBe('email_missing')
    expect(await attributesOf({}, { facts: { nameId: 'ada@example.com' } })).toBe('email_missing')
  })

  test('keeps the characters of its names', async () => {
    const names = { email: 'a&b@example.com', displayName: 'Zoë "<Ada>" O\u2019Neil', groups: ['R&D', 'R&D', ' x '] }
    expect(await attributesOf(names)).toMatchObject({
      email: 'a&b@example.com',
      name: 'Zoë "<Ada>" O\u2019Neil',
      groups: ['R&D', 'x'],
    })
  })

  test('is found by names of any object too', async () => {
    const attributes = { email: 'ada@example.com', __proto__: 'x', constructor: 'x', getAssertionXml: 'x', nameID: 'y' }
    expect(await attributesOf(attributes)).toMatchObject({ subject: 'u-4711', email: 'ada@example.com' })
  })
})

describe('the text of a form', () => {
  test('has the length of the longest document with line ends at most', () => {
    const longest = Buffer.alloc(XML_LIMITS.bytes).toString('base64')
    const lines = longest.replace(/.{1,64}/g, '$&\r\n')
    expect(lines.length).toBeLessThanOrEqual(RESPONSE_LIMIT)
    expect(lines.length).toBeGreaterThan(RESPONSE_LIMIT - 66)
    expect(readResponse('\n'.repeat(RESPONSE_LIMIT))).not.toMatchObject({ refusal: 'too_large' })
    expect(readResponse('\n'.repeat(RESPONSE_LIMIT + 1))).toEqual({ refusal: 'too_large', detail: null })
  })

  test('is base64 of a document', () => {
    for (const text of ['PHg+*', 'PHg-', '=PHg', 'PHg===', 'P Hg='])
      expect(readResponse(text)).toEqual({ refusal: 'not_base64', detail: null })
    expect(readResponse(Buffer.from('<x>').toString('base64'))).toEqual({ refusal: 'not_xml', detail: null })
    expect(readResponse(Buffer.from('<x/>').toString('base64'))).toEqual({ refusal: 'not_a_response', detail: 'x' })
  })
})

test('a response that is signed itself proves no assertion whose own signature is of another text', async () => {
  const changed = fixture.build().replace('>u-4711<', '>u-4712<')
  expect(await fixture.verify(signElement(changed, { key: fixture.idp.key }))).toMatchObject({
    refusal: 'signature_invalid',
  })
})

test('a response that is signed itself names where it goes', async () => {
  const { key } = fixture.idp
  const unnamed = signElement(fixture.build({ response: { destination: null } }), { key })
  expect(await fixture.verify(unnamed)).toEqual({ refusal: 'other_recipient', detail: '' })
  const elsewhere = signElement(fixture.build({ response: { destination: 'https://other.example' } }), { key })
  expect(await fixture.verify(elsewhere)).toEqual({ refusal: 'other_recipient', detail: 'https://other.example' })
})

test('the instant of the verification is the one that is given, whatever the machine says', async () => {
  const at = new Date('2031-05-01T00:00:00Z')
  const around = { issuedAt: at, notBefore: at, notOnOrAfter: new Date(at.getTime() + 60_000) }
  expect(Math.abs(Date.now() - at.getTime())).toBeGreaterThan(86_400_000)
  expect(await fixture.try({ facts: around, wanted: { now: at } })).toMatchObject({ person: fixture.proof.person })
  expect(await fixture.try({ facts: around, wanted: { now: NOW } })).toMatchObject({ refusal: 'not_yet_valid' })
})
