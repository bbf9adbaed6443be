import { createHash, type KeyObject, sign } from 'node:crypto'

/**
 * Messages of an identity provider. They are written in their canonical form and signed by `node:crypto` alone, so that
 * the library that verifies them has no part in their signatures.
 */
export interface AssertionFacts {
  id: string
  issuer: string
  audience: string | null
  recipient: string
  inResponseTo: string | null
  nameId: string
  nameIdFormat: string
  /** The signature is valid for this attribute alone: written as it is, without escapes. */
  rawNameId?: string
  attributes: Readonly<Record<string, string | readonly string[]>>
  issuedAt: Date
  notBefore: Date
  notOnOrAfter: Date
  sessionNotOnOrAfter?: Date
  /** XML that stands at the end of the assertion, of its conditions, of its subject. */
  more?: string
  moreConditions?: string
  moreSubject?: string
}

/** How an element is signed. */
export interface SigningFacts {
  key: KeyObject
  method?: string
  digest?: string
  hash?: string
  /** In place of the two transforms of SAML. */
  transforms?: string
  canonicalization?: string
  /** XML that stands at the end of the signature. */
  more?: string
}

export const SAML = 'urn:oasis:names:tc:SAML:2.0:assertion'
export const SAMLP = 'urn:oasis:names:tc:SAML:2.0:protocol'
export const DS = 'http://www.w3.org/2000/09/xmldsig#'
const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#'

export const TRANSFORMS = `<ds:Transform Algorithm="${DS}enveloped-signature"></ds:Transform><ds:Transform Algorithm="${EXCLUSIVE}"></ds:Transform>`

const escapeText = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('\r', '&#xD;')

/** An assertion without a signature. */
export function buildAssertion(facts: AssertionFacts): string {
  const { id, issuer, audience, recipient, inResponseTo } = facts
  const at = (date: Date) => date.toISOString()
  const answers = inResponseTo === null ? '' : ` InResponseTo="${inResponseTo}"`
  const sessionEnd = facts.sessionNotOnOrAfter ? ` SessionNotOnOrAfter="${at(facts.sessionNotOnOrAfter)}"` : ''
  const restriction =
    audience === null
      ? ''
      : `<saml:AudienceRestriction><saml:Audience>${escapeText(audience)}</saml:Audience></saml:AudienceRestriction>`
  return `<saml:Assertion xmlns:saml="${SAML}" ID="${id}" IssueInstant="${at(facts.issuedAt)}" Version="2.0"><saml:Issuer>${escapeText(issuer)}</saml:Issuer><saml:Subject><saml:NameID Format="${facts.nameIdFormat}">${facts.rawNameId ?? escapeText(facts.nameId)}</saml:NameID><saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer"><saml:SubjectConfirmationData${answers} NotOnOrAfter="${at(facts.notOnOrAfter)}" Recipient="${recipient}"></saml:SubjectConfirmationData></saml:SubjectConfirmation>${facts.moreSubject ?? ''}</saml:Subject><saml:Conditions NotBefore="${at(facts.notBefore)}" NotOnOrAfter="${at(facts.notOnOrAfter)}">${restriction}${facts.moreConditions ?? ''}</saml:Conditions><saml:AuthnStatement AuthnInstant="${at(facts.issuedAt)}" SessionIndex="_session"${sessionEnd}><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>${buildAttributes(facts.attributes)}${facts.more ?? ''}</saml:Assertion>`
}

function buildAttributes(attributes: AssertionFacts['attributes']): string {
  const written = Object.entries(attributes).map(([name, value]) => {
    const values = typeof value === 'string' ? [value] : value
    const inner = values.map((text) => `<saml:AttributeValue>${escapeText(text)}</saml:AttributeValue>`)
    return `<saml:Attribute Name="${name}">${inner.join('')}</saml:Attribute>`
  })
  return written.length === 0 ? '' : `<saml:AttributeStatement>${written.join('')}</saml:AttributeStatement>`
}

/** A response around an assertion. */
export function buildResponse(
  facts: {
    id: string
    issuer: string
    destination: string | null
    inResponseTo: string | null
    issuedAt: Date
    status?: string
    more?: string
  },
  assertion: string,
): string {
  const destination = facts.destination === null ? '' : ` Destination="${facts.destination}"`
  const answers = facts.inResponseTo === null ? '' : ` InResponseTo="${facts.inResponseTo}"`
  return `<samlp:Response xmlns:samlp="${SAMLP}"${destination} ID="${facts.id}"${answers} IssueInstant="${facts.issuedAt.toISOString()}" Version="2.0"><saml:Issuer xmlns:saml="${SAML}">${escapeText(facts.issuer)}</saml:Issuer>${facts.more ?? ''}<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:${facts.status ?? 'Success'}"></samlp:StatusCode></samlp:Status>${assertion}</samlp:Response>`
}

const idOf = (xml: string) => / ID="([^"]*)"/.exec(xml)?.[1] ?? ''

/** A signature of an element in its canonical form. */
export function buildSignature(element: string, { key, ...facts }: SigningFacts): string {
  const {
    method = 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
    digest = 'http://www.w3.org/2001/04/xmlenc#sha256',
    hash = 'sha256',
    transforms = TRANSFORMS,
    canonicalization = EXCLUSIVE,
  } = facts
  const value = createHash(hash).update(element).digest('base64')
  const content = `<ds:CanonicalizationMethod Algorithm="${canonicalization}"></ds:CanonicalizationMethod><ds:SignatureMethod Algorithm="${method}"></ds:SignatureMethod><ds:Reference URI="#${idOf(element)}"><ds:Transforms>${transforms}</ds:Transforms><ds:DigestMethod Algorithm="${digest}"></ds:DigestMethod><ds:DigestValue>${value}</ds:DigestValue></ds:Reference>`
  const signed = sign(hash, Buffer.from(`<ds:SignedInfo xmlns:ds="${DS}">${content}</ds:SignedInfo>`), key)
  return `<ds:Signature xmlns:ds="${DS}"><ds:SignedInfo>${content}</ds:SignedInfo><ds:SignatureValue>${signed.toString('base64')}</ds:SignatureValue>${facts.more ?? ''}</ds:Signature>`
}

/** The element with its signature behind its issuer. */
export function signElement(element: string, facts: SigningFacts): string {
  return placeSignature(element, buildSignature(element, facts))
}

/** Puts a signature behind the issuer of an element. */
export function placeSignature(element: string, signature: string): string {
  return element.replace('</saml:Issuer>', () => `</saml:Issuer>${signature}`)
}

/** The `SAMLResponse` of a form. */
export const encodeResponse = (xml: string): string => Buffer.from(xml).toString('base64')
