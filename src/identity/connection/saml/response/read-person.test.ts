import { describe, expect, test } from 'vitest'
import { SAML } from '../../../../../test/harness/fakes/saml-idp/signed-response.ts'
import { parseXml } from '../xml/parse-xml.ts'
import { type AttributeNames, readPerson } from './read-person.ts'

const EMAIL_FORMAT = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress'
const USUAL = { email: null, name: null, groups: null }

const attribute = (name: string, ...values: string[]) =>
  `<saml:Attribute Name="${name}">${values.map((value) => `<saml:AttributeValue>${value}</saml:AttributeValue>`).join('')}</saml:Attribute>`

/** Reads the person of these statements, each a list of attributes. */
function read(
  statements: readonly string[],
  names: AttributeNames = USUAL,
  nameId: { value: string; format: string | null } = { value: 'u-1', format: null },
) {
  const text = statements.map((inner) => `<saml:AttributeStatement>${inner}</saml:AttributeStatement>`).join('')
  const document = parseXml(Buffer.from(`<x xmlns:saml="${SAML}">${text}</x>`), { comments: 'refuse' })
  if (typeof document === 'string') throw new Error(document)
  return readPerson({ nameId, statements: document.root.children }, names)
}

const EMAIL = attribute('email', 'ada@example.com')

describe('a person', () => {
  test('has a subject and an e-mail at least', () => {
    expect(read([EMAIL])).toEqual({ subject: 'u-1', email: 'ada@example.com', name: null, groups: [] })
    expect(read([])).toEqual({ refusal: 'email_missing', detail: null })
  })

  test.each([
    'ada',
    '@example.com',
    'ada@example.com@evil.example',
    'ada@example.com, eve@evil.example',
    'a da@example.com',
  ])('has no e-mail %s', (text) => {
    const refused = { refusal: 'attribute_invalid', detail: 'email' }
    expect(read([attribute('email', text)])).toEqual(refused)
    expect(read([], USUAL, { value: text, format: EMAIL_FORMAT })).toEqual(refused)
  })

  test('has what all statements say together', () => {
    expect(read([EMAIL, attribute('name', 'Ada') + attribute('groups', 'a', 'b', 'a')])).toEqual({
      subject: 'u-1',
      email: 'ada@example.com',
      name: 'Ada',
      groups: ['a', 'b'],
    })
  })

  test('has the first usual attribute that is there', () => {
    const [first, second] = [attribute('mail', 'first@example.com'), attribute('emailAddress', 'second@example.com')]
    expect(read([second + first])).toMatchObject({ email: 'first@example.com' })
    expect(read([second])).toMatchObject({ email: 'second@example.com' })
  })

  test('has the attributes that the connection names alone', () => {
    const names = { email: 'contact', name: 'label', groups: 'teams' }
    const named = attribute('contact', 'a@example.com') + attribute('label', 'A') + attribute('teams', 't')
    const usual = EMAIL + attribute('name', 'Other') + attribute('groups', 'other')
    expect(read([usual + named], names)).toEqual({ subject: 'u-1', email: 'a@example.com', name: 'A', groups: ['t'] })
    expect(read([usual], names)).toEqual({ refusal: 'email_missing', detail: null })
    // Not the attributes whose names are its characters.
    expect(read([attribute('c', 'c@example.com')], names)).toEqual({ refusal: 'email_missing', detail: null })
  })

  test('has the name id as its e-mail where that is one, and no attribute is there or named', () => {
    const nameId = { value: 'id@example.com', format: EMAIL_FORMAT }
    expect(read([], USUAL, nameId)).toMatchObject({ subject: 'id@example.com', email: 'id@example.com' })
    expect(read([EMAIL], USUAL, nameId)).toMatchObject({ subject: 'id@example.com', email: 'ada@example.com' })
    expect(read([attribute('email')], USUAL, nameId)).toMatchObject({ email: 'id@example.com' })
    expect(read([], { ...USUAL, email: 'contact' }, nameId)).toMatchObject({ refusal: 'email_missing' })
    expect(read([], USUAL, { ...nameId, format: null })).toMatchObject({ refusal: 'email_missing' })
  })
})

describe('an attribute that is read', () => {
  test.each(['email', 'name', 'groups'])('stands there once: %s', (name) => {
    const once = name === 'email' ? '' : EMAIL
    const twice = [once + attribute(name, 'a'), attribute(name, 'b')]
    expect(read(twice)).toEqual({ refusal: 'attribute_repeated', detail: name })
  })

  test('has one value, empty ones aside, where the person has one', () => {
    expect(read([attribute('email', 'a@example.com', 'b@example.com')])).toEqual({
      refusal: 'attribute_repeated',
      detail: 'email',
    })
    expect(read([EMAIL + attribute('name', 'A', 'B')])).toEqual({ refusal: 'attribute_repeated', detail: 'name' })
    expect(read([attribute('email', '', 'a@example.com', ' ') + attribute('name', '')])).toMatchObject({
      email: 'a@example.com',
      name: null,
    })
  })

  test('has up to 200 groups', () => {
    const groups = (count: number) => attribute('groups', ...Array.from({ length: count }, (_, index) => `g${index}`))
    expect(read([EMAIL + groups(200)])).toMatchObject({ groups: expect.objectContaining({ length: 200 }) })
    expect(read([EMAIL + groups(201)])).toEqual({ refusal: 'attribute_invalid', detail: 'more than 200 groups' })
  })

  test('has values of up to 256 characters, without elements and control characters', () => {
    const longest = 'x'.repeat(256)
    expect(read([EMAIL + attribute('groups', longest)])).toMatchObject({ groups: [longest] })
    expect(read([EMAIL + attribute('name', longest)])).toMatchObject({ name: longest.slice(0, 200) })
    for (const value of [`${longest}x`, 'a\u202eb', 'a\nb', 'a<x/>b'])
      for (const values of [[value], ['ok', value], [value, 'ok']])
        expect(read([EMAIL + attribute('groups', ...values)])).toEqual({
          refusal: 'attribute_invalid',
          detail: 'groups',
        })
  })

  test('has the values of its namespace alone', () => {
    expect(read([EMAIL + attribute('name', 'Ada').replaceAll('saml:AttributeValue', 'AttributeValue')])).toMatchObject({
      name: null,
    })
  })
})
