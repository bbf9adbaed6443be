import type { SamlProof, Verification } from '../../../../src/identity/connection/saml/response/verify-response.ts'
import { readResponse, verifyResponse } from '../../../../src/identity/connection/saml/response/verify-response.ts'
import { createSamlKey, type SamlKey } from './saml-key.ts'
import {
  type AssertionFacts,
  buildAssertion,
  buildResponse,
  encodeResponse,
  type SigningFacts,
  signElement,
} from './signed-response.ts'

/** The instant at which the responses of the fixture are verified. */
export const NOW = new Date('2026-11-27T12:00:00.000Z')

/** An instant, in seconds from `NOW`. */
export const later = (seconds: number): Date => new Date(NOW.getTime() + seconds * 1000)

/** What a test changes of a genuine response. */
export interface ResponseChange {
  facts?: Partial<AssertionFacts>
  response?: Partial<Parameters<typeof buildResponse>[0]>
  signing?: Partial<SigningFacts>
  wanted?: Partial<Verification>
}

/** A genuine response of one identity provider, and what verifies it. */
export interface ResponseFixture {
  idp: SamlKey
  wanted: Verification
  proof: SamlProof
  assertion(facts?: Partial<AssertionFacts>): string
  signed(assertion: string, signing?: Partial<SigningFacts>): string
  response(assertion: string, change?: ResponseChange['response']): string
  /** A response with a signed assertion. */
  build(change?: ResponseChange): string
  verify(xml: string, wanted?: Partial<Verification>): ReturnType<typeof verifyResponse>
  /** Builds and verifies. */
  try(change: ResponseChange): ReturnType<typeof verifyResponse>
}

/** Reads and verifies the `SAMLResponse` of a form. */
export async function judgeResponse(encoded: string, wanted: Verification): ReturnType<typeof verifyResponse> {
  const read = readResponse(encoded)
  return 'refusal' in read ? read : verifyResponse(read, wanted)
}

/** Creates a fixture with a key of its own. */
export async function createResponseFixture(): Promise<ResponseFixture> {
  const idp = await createSamlKey()
  const wanted: Verification = {
    issuer: 'https://idp.example/saml',
    audience: 'https://app.example/saml/7',
    recipient: 'https://app.example/saml/7/acs',
    requestId: '_request',
    now: NOW,
    certificates: [idp.certificate],
    attributes: { email: null, name: null, groups: null },
  }
  const { issuer, recipient, requestId } = wanted
  const assertion = (facts: Partial<AssertionFacts> = {}) =>
    buildAssertion({
      id: '_assertion',
      issuer,
      audience: wanted.audience,
      recipient,
      inResponseTo: requestId,
      nameId: 'u-4711',
      nameIdFormat: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
      attributes: { email: 'ada@example.com', displayName: 'Ada Lovelace', groups: ['staff', 'admins'] },
      issuedAt: NOW,
      notBefore: later(-30),
      notOnOrAfter: later(300),
      ...facts,
    })
  const signed = (xml: string, signing: Partial<SigningFacts> = {}) => signElement(xml, { key: idp.key, ...signing })
  const response = (xml: string, change: ResponseChange['response'] = {}) => {
    const facts = { id: '_response', issuer, destination: recipient, inResponseTo: requestId, issuedAt: NOW }
    return buildResponse({ ...facts, ...change }, xml)
  }
  const build = (change: ResponseChange = {}) =>
    response(signed(assertion(change.facts), change.signing), change.response)
  const verify = (xml: string, change: Partial<Verification> = {}) =>
    judgeResponse(encodeResponse(xml), { ...wanted, ...change })
  const person = { subject: 'u-4711', email: 'ada@example.com', name: 'Ada Lovelace', groups: ['staff', 'admins'] }
  return {
    idp,
    wanted,
    proof: { person, assertionId: '_assertion', signers: [idp.certificate], endsAt: later(360) },
    assertion,
    signed,
    response,
    build,
    verify,
    try: (change) => verify(build(change), change.wanted),
  }
}
