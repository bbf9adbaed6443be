import { deflateRawSync } from 'node:zlib'
import { escapeXml } from '../xml/escape-xml.ts'

/** Sender and recipient of a request. */
export interface AuthnRequestFacts {
  /** Id of the request, an XML name: `InResponseTo` of the answer. */
  id: string
  issuedAt: Date
  /** Entity id of the service for the connection. */
  entityId: string
  /** URL of the assertion consumer service. */
  acsUrl: string
  /** Single sign-on URL of the identity provider, for HTTP-Redirect. */
  ssoUrl: string
}

/**
 * The URL that sends a browser to the identity provider with a request (SAML 2.0 bindings, 3.4.4). The request is not
 * signed: an answer goes only to the registered URL of the service. It has no `RelayState`, which 80 bytes limit: its id
 * finds the sign-in. Pure.
 */
export function buildAuthnRequestUrl(facts: AuthnRequestFacts): string {
  const url = new URL(facts.ssoUrl)
  url.searchParams.set('SAMLRequest', deflateRawSync(buildAuthnRequest(facts)).toString('base64'))
  return url.href
}

function buildAuthnRequest({ id, issuedAt, entityId, acsUrl, ssoUrl }: AuthnRequestFacts): string {
  const attributes = {
    ID: id,
    Version: '2.0',
    IssueInstant: issuedAt.toISOString(),
    Destination: ssoUrl,
    ProtocolBinding: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST',
    AssertionConsumerServiceURL: acsUrl,
  }
  const written = Object.entries(attributes).map(([name, value]) => ` ${name}="${escapeXml(value)}"`)
  return `<samlp:AuthnRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"${written.join('')}><saml:Issuer>${escapeXml(entityId)}</saml:Issuer><samlp:NameIDPolicy AllowCreate="true"/></samlp:AuthnRequest>`
}
