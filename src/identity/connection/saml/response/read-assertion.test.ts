import { describe, expect, test } from 'vitest'
import { createResponseFixture, later, NOW } from '../../../../../test/harness/fakes/saml-idp/response-fixture.ts'
import { type AssertionFacts, SAML } from '../../../../../test/harness/fakes/saml-idp/signed-response.ts'
import { parseXml } from '../xml/parse-xml.ts'
import { checkAssertion } from './read-assertion.ts'

const fixture = await createResponseFixture()

const EMAIL_FORMAT = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress'

/** Checks the text of an assertion, as it is after its signature was verified. */
function check(xml: string, now = NOW) {
  const document = parseXml(Buffer.from(xml), { comments: 'refuse' })
  if (typeof document === 'string') throw new Error(document)
  return checkAssertion(document.root, { ...fixture.wanted, now })
}

/** Checks the usual assertion with these facts, after a change of its text, which must be one. */
function checkChanged(facts: Partial<AssertionFacts>, change: (xml: string) => string) {
  const xml = fixture.assertion(facts)
  const changed = change(xml)
  expect(changed).not.toBe(xml)
  return check(changed)
}

const subjectOf = (xml: string) => /<saml:Subject>.*<\/saml:Subject>/.exec(xml)![0]
const conditionsOf = (xml: string) => /<saml:Conditions .*<\/saml:Conditions>/.exec(xml)![0]
const confirmationOf = (xml: string) => /<saml:SubjectConfirmation .*<\/saml:SubjectConfirmation>/.exec(xml)![0]

test('an assertion has its id, its subject, its end with a minute more, and its statements', () => {
  const checked = check(fixture.assertion({ nameId: 'ada@example.com', nameIdFormat: EMAIL_FORMAT }))
  expect(checked).toEqual({
    id: '_assertion',
    nameId: { value: 'ada@example.com', format: EMAIL_FORMAT },
    endsAt: later(360),
    statements: [expect.objectContaining({ name: 'AttributeStatement', namespace: SAML })],
  })
  const plain = checkChanged({}, (xml) =>
    xml.replace(/<saml:NameID [^>]*>/, '<saml:NameID>').replace(/ ID="[^"]*"/, ''),
  )
  expect(plain).toMatchObject({ id: '', nameId: { value: 'u-4711', format: null } })
})

test('another element than an assertion, or one of another namespace, is none', () => {
  expect(checkChanged({}, (xml) => xml.replaceAll('saml:Assertion', 'saml:Advice'))).toEqual({
    refusal: 'assertion_missing',
    detail: 'Advice',
  })
  expect(checkChanged({}, (xml) => xml.replace(SAML, 'urn:evil'))).toMatchObject({ refusal: 'assertion_missing' })
})

describe('the issuer', () => {
  test('stands there once', () => {
    const issuer = `<saml:Issuer>${fixture.wanted.issuer}</saml:Issuer>`
    expect(checkChanged({}, (xml) => xml.replace(issuer, issuer + issuer))).toEqual({
      refusal: 'issuer_unknown',
      detail: fixture.wanted.issuer,
    })
    expect(checkChanged({}, (xml) => xml.replace(issuer, ''))).toEqual({ refusal: 'issuer_unknown', detail: '' })
  })

  test('of another name is named in the refusal', () => {
    expect(check(fixture.assertion({ issuer: 'https://evil.example' }))).toEqual({
      refusal: 'issuer_unknown',
      detail: 'https://evil.example',
    })
  })
})

describe('instants', () => {
  test.each([
    ['of no issue', / IssueInstant="[^"]*"/, ''],
    ['that are no date', / IssueInstant="[^"]*"/, ' IssueInstant="2026-13-27T12:00:00Z"'],
    ['of another zone', / IssueInstant="[^"]*"/, ' IssueInstant="2026-11-27T12:00:00+01:00"'],
    ['with more than the instant', / IssueInstant="[^"]*"/, ' IssueInstant="2026-11-27T12:00:00Z x"'],
  ])('%s are refused', (_what, pattern, replacement) => {
    expect(checkChanged({}, (xml) => xml.replace(pattern, replacement))).toEqual({
      refusal: 'not_yet_valid',
      detail: 'IssueInstant',
    })
  })

  test('of an issue may be up to a minute ahead', () => {
    expect(check(fixture.assertion({ issuedAt: later(60) }))).toMatchObject({ id: '_assertion' })
    expect(check(fixture.assertion({ issuedAt: later(60.001) }))).toEqual({
      refusal: 'not_yet_valid',
      detail: 'IssueInstant',
    })
  })

  test('may be in UTC with a fraction and a written offset', () => {
    const changed = checkChanged({}, (xml) =>
      xml.replace(/ IssueInstant="[^"]*"/, ' IssueInstant="2026-11-27T12:00:00.123456789+00:00"'),
    )
    expect(changed).toMatchObject({ id: '_assertion' })
  })

  test('of the conditions that cannot be read are refused', () => {
    expect(checkChanged({}, (xml) => xml.replace(/ NotBefore="[^"]*"/, ' NotBefore="soon"'))).toEqual({
      refusal: 'not_yet_valid',
      detail: 'soon',
    })
    const until = /(<saml:Conditions [^>]* NotOnOrAfter=)"[^"]*"/
    expect(checkChanged({}, (xml) => xml.replace(until, '$1"late"'))).toEqual({ refusal: 'expired', detail: 'late' })
    const ended = (seconds: number) =>
      checkChanged({}, (xml) => xml.replace(until, `$1"${later(seconds).toISOString()}"`))
    expect(ended(-59.999)).toMatchObject({ id: '_assertion' })
    expect(ended(-60)).toEqual({ refusal: 'expired', detail: later(-60).toISOString() })
  })

  test('of the conditions may be left out', () => {
    const changed = checkChanged({}, (xml) => xml.replace(/<saml:Conditions [^>]*>/, '<saml:Conditions>'))
    expect(changed).toMatchObject({ id: '_assertion' })
  })
})

describe('the conditions', () => {
  test('stand there once', () => {
    expect(checkChanged({}, (xml) => xml.replace(conditionsOf(xml), ''))).toEqual({
      refusal: 'other_audience',
      detail: '',
    })
    expect(checkChanged({}, (xml) => xml.replace(conditionsOf(xml), (one) => one + one))).toEqual({
      refusal: 'other_audience',
      detail: '',
    })
  })

  test.each(['<saml:OneTimeUse/>', '<saml:ProxyRestriction/>'])('may have %s', (condition) => {
    expect(check(fixture.assertion({ moreConditions: condition }))).toMatchObject({ id: '_assertion' })
  })

  test('of an unknown name are refused by it', () => {
    const moreConditions = '<x:OneTimeUse xmlns:x="urn:x"/>'
    expect(check(fixture.assertion({ moreConditions }))).toEqual({
      refusal: 'unexpected_element',
      detail: 'OneTimeUse',
    })
  })

  test('name the service in each restriction', () => {
    const moreConditions =
      '<saml:AudienceRestriction><saml:Audience>https://other.example</saml:Audience></saml:AudienceRestriction>'
    expect(check(fixture.assertion({ moreConditions }))).toEqual({
      refusal: 'other_audience',
      detail: `${fixture.wanted.audience} https://other.example`,
    })
  })

  test('may name several audiences, one of which is the service', () => {
    const other = '<saml:Audience>https://other.example</saml:Audience>'
    const add = (xml: string) => xml.replace('<saml:Audience>', `${other}<saml:Audience>`)
    expect(checkChanged({}, add)).toMatchObject({ id: '_assertion' })
    expect(check(fixture.assertion({ audience: null }))).toEqual({ refusal: 'other_audience', detail: '' })
    const foreign = checkChanged({ audience: 'https://app.example/saml/8' }, add)
    expect(foreign).toEqual({
      refusal: 'other_audience',
      detail: 'https://other.example https://app.example/saml/8',
    })
  })
})

describe('the subject', () => {
  test('stands there once', () => {
    expect(checkChanged({}, (xml) => xml.replace(subjectOf(xml), ''))).toMatchObject({ refusal: 'subject_missing' })
    expect(checkChanged({}, (xml) => xml.replace(subjectOf(xml), (one) => one + one))).toMatchObject({
      refusal: 'subject_missing',
    })
  })

  test('has one name, which is not of one session', () => {
    expect(check(fixture.assertion({ moreSubject: '<saml:NameID>other</saml:NameID>' }))).toMatchObject({
      refusal: 'subject_missing',
    })
    const nameIdFormat = 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient'
    expect(check(fixture.assertion({ nameIdFormat }))).toEqual({ refusal: 'subject_transient', detail: null })
  })

  test('has a name of 1 to 256 characters, without elements and control characters', () => {
    const named = (nameId: string) => check(fixture.assertion({ nameId }))
    const longest = 'x'.repeat(256)
    expect(named(longest)).toMatchObject({ nameId: { value: longest } })
    for (const nameId of ['', 'x'.repeat(257), 'a\u202ab', 'a\u202eb', 'a\u2066b', 'a\u2069b', 'a\u2029b', 'a\tb'])
      expect(named(nameId)).toMatchObject({ refusal: 'subject_missing' })
    expect(check(fixture.assertion({ rawNameId: 'u<x></x>-4711' }))).toMatchObject({ refusal: 'subject_missing' })
    expect(checkChanged({}, (xml) => xml.replace(/<saml:NameID .*<\/saml:NameID>/, ''))).toMatchObject({
      refusal: 'subject_missing',
    })
  })
})

describe('the confirmation', () => {
  test('is missing without one as bearer that has its data once', () => {
    const missing = { refusal: 'confirmation_missing', detail: null }
    expect(checkChanged({}, (xml) => xml.replace(confirmationOf(xml), ''))).toEqual(missing)
    expect(checkChanged({}, (xml) => xml.replace('cm:bearer', 'cm:holder-of-key'))).toEqual(missing)
    const data = /<saml:SubjectConfirmationData .*<\/saml:SubjectConfirmationData>/
    expect(checkChanged({}, (xml) => xml.replace(data, ''))).toEqual(missing)
    expect(checkChanged({}, (xml) => xml.replace(data, (one) => one + one))).toEqual(missing)
  })

  test('may be the first or the second one, beside one that does not hold', () => {
    const foreign = (xml: string) => confirmationOf(xml).replace('Recipient="', 'Recipient="https://other.example/')
    const behind = checkChanged({}, (xml) => xml.replace(confirmationOf(xml), (one) => one + foreign(xml)))
    expect(behind).toMatchObject({ id: '_assertion', endsAt: later(360) })
    const before = checkChanged({}, (xml) => xml.replace(confirmationOf(xml), (one) => foreign(xml) + one))
    expect(before).toMatchObject({ id: '_assertion', endsAt: later(360) })
    const last = checkChanged({}, (xml) =>
      xml.replace(confirmationOf(xml), (one) => one.replace('cm:bearer', 'cm:holder-of-key') + foreign(xml)),
    )
    expect(last).toEqual({
      refusal: 'other_recipient',
      detail: `https://other.example/${fixture.wanted.recipient}`,
    })
  })

  test('names the recipient and the request', () => {
    expect(checkChanged({}, (xml) => xml.replace(/ Recipient="[^"]*"/, ''))).toEqual({
      refusal: 'other_recipient',
      detail: '',
    })
    expect(check(fixture.assertion({ inResponseTo: null }))).toEqual({ refusal: 'unsolicited', detail: null })
    expect(check(fixture.assertion({ inResponseTo: '_other' }))).toEqual({ refusal: 'other_request', detail: null })
  })

  test('has an end that can be read', () => {
    const end = /(<saml:SubjectConfirmationData [^>]*) NotOnOrAfter="[^"]*"/
    expect(checkChanged({}, (xml) => xml.replace(end, '$1'))).toEqual({ refusal: 'expired', detail: 'NotOnOrAfter' })
    expect(checkChanged({}, (xml) => xml.replace(end, '$1 NotOnOrAfter="late"'))).toEqual({
      refusal: 'expired',
      detail: 'late',
    })
    const start = (at: Date) => (xml: string) => xml.replace(end, (all) => `${all} NotBefore="${at.toISOString()}"`)
    expect(checkChanged({}, start(later(60)))).toMatchObject({ id: '_assertion' })
    expect(checkChanged({}, start(later(60.001)))).toMatchObject({ refusal: 'not_yet_valid' })
  })

  test('ends within a day, with the minute for the clocks', () => {
    const ending = (seconds: number) => check(fixture.assertion({ notOnOrAfter: later(seconds) }))
    expect(ending(86_340)).toMatchObject({ endsAt: later(86_400) })
    expect(ending(86_340.001)).toEqual({ refusal: 'lifetime_too_long', detail: null })
  })
})

describe('the authentication', () => {
  test('is stated', () => {
    const statement = /<saml:AuthnStatement .*<\/saml:AuthnStatement>/
    expect(checkChanged({}, (xml) => xml.replace(statement, ''))).toEqual({
      refusal: 'confirmation_missing',
      detail: 'AuthnStatement',
    })
  })

  test('has no end, or one that can be read and is not over', () => {
    const ending = (seconds: number) => check(fixture.assertion({ sessionNotOnOrAfter: later(seconds) }))
    expect(ending(-59.999)).toMatchObject({ id: '_assertion' })
    expect(ending(-60)).toEqual({ refusal: 'expired', detail: 'SessionNotOnOrAfter' })
    const unread = checkChanged({ sessionNotOnOrAfter: later(60) }, (xml) =>
      xml.replace(/ SessionNotOnOrAfter="[^"]*"/, ' SessionNotOnOrAfter="late"'),
    )
    expect(unread).toEqual({ refusal: 'expired', detail: 'SessionNotOnOrAfter' })
  })
})
