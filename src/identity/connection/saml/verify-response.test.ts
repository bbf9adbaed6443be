import { beforeAll, describe, expect, test } from 'vitest'
import { createSamlKey, type SamlKey } from '../../../../test/harness/fakes/saml-idp/saml-key.ts'
import {
  type AssertionFacts,
  buildAssertion,
  buildResponse,
  encodeResponse,
  type SigningFacts,
  signElement,
} from '../../../../test/harness/fakes/saml-idp/signed-response.ts'
import { type Verification, verifyResponse } from './verify-response.ts'

const NOW = new Date('2026-11-27T12:00:00.000Z')
const later = (seconds: number) => new Date(NOW.getTime() + seconds * 1000)
const EMAIL_FORMAT = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress'
const PERSISTENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent'

let idp: SamlKey
let wanted: Verification
beforeAll(async () => {
  idp = await createSamlKey()
  wanted = {
    issuer: 'https://idp.example/saml',
    audience: 'https://app.example/saml/7',
    recipient: 'https://app.example/saml/7/acs',
    requestId: '_request',
    now: NOW,
    certificates: [idp.certificate],
    attributes: { email: null, name: null, groups: null },
  }
})

const factsOf = (change: Partial<AssertionFacts> = {}): AssertionFacts => ({
  id: '_assertion',
  issuer: wanted.issuer,
  audience: wanted.audience,
  recipient: wanted.recipient,
  inResponseTo: wanted.requestId,
  nameId: 'u-4711',
  nameIdFormat: PERSISTENT,
  attributes: { email: 'ada@example.com', displayName: 'Ada Lovelace', groups: ['staff', 'admins'] },
  issuedAt: NOW,
  notBefore: later(-30),
  notOnOrAfter: later(300),
  ...change,
})

type ResponseChange = Partial<Parameters<typeof buildResponse>[0]>
const responseOf = (assertion: string, change: ResponseChange = {}) =>
  buildResponse(
    { id: '_response', issuer: wanted.issuer, destination: wanted.recipient, inResponseTo: wanted.requestId, issuedAt: NOW, ...change },
    assertion,
  )

interface Change {
  facts?: Partial<AssertionFacts>
  response?: ResponseChange
  signing?: Partial<SigningFacts>
  wanted?: Partial<Verification>
}
const signedOf = ({ facts, response, signing }: Change) =>
  responseOf(signElement(buildAssertion(factsOf(facts)), { key: idp.key, ...signing }), response)
const verify = (xml: string, change: Partial<Verification> = {}) =>
  verifyResponse(encodeResponse(xml), { ...wanted, ...change })
const verifyChanged = (change: Change) => verify(signedOf(change), change.wanted)

describe('a signed response', () => {
  test('proves the person that it describes', async () => {
    expect(await verifyChanged({})).toEqual({
      person: { subject: 'u-4711', email: 'ada@example.com', name: 'Ada Lovelace', groups: ['staff', 'admins'] },
      assertionId: '_assertion',
      endsAt: later(360),
      sessionEndsAt: null,
    })
  })
})
