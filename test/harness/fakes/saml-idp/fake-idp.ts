import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inflateRawSync } from 'node:zlib'
import { createSamlKey, type SamlKey } from './saml-key.ts'
import {
  type AssertionFacts,
  buildAssertion,
  buildResponse,
  encodeResponse,
  type SigningFacts,
  signElement,
} from './signed-response.ts'

/** A request as the identity provider reads it. */
export interface ReadRequest {
  id: string
  issuer: string
  acsUrl: string
  destination: string
  issuedAt: Date
}

/** What a test changes of the answer. */
export interface AnswerChange {
  facts?: Partial<AssertionFacts>
  response?: Partial<Parameters<typeof buildResponse>[0]>
  signing?: Partial<SigningFacts>
}

/** An identity provider that speaks SAML: its answers for tests that need no page. */
export interface FakeIdp {
  entityId: string
  ssoUrl: string
  key: SamlKey
  metadata: string
  /** The person who is signed in there. */
  person: { nameId: string; attributes: Record<string, string | string[]> }
  /** The time of its clock. */
  now: () => Date
  /** Reads the request in the URL of a redirect. */
  readRequest(url: string): ReadRequest
  /** Its `SAMLResponse` for a request. */
  answer(request: ReadRequest, change?: AnswerChange): string
}

const attributeOf = (xml: string, name: string) => new RegExp(` ${name}="([^"]*)"`).exec(xml)?.[1] ?? ''
const unescapeXml = (text: string) => text.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&amp;', '&')

function readRequest(url: string): ReadRequest {
  const packed = new URL(url).searchParams.get('SAMLRequest') ?? ''
  const xml = inflateRawSync(Buffer.from(packed, 'base64')).toString()
  return {
    id: attributeOf(xml, 'ID'),
    issuer: unescapeXml(/<saml:Issuer>([^<]*)/.exec(xml)?.[1] ?? ''),
    acsUrl: unescapeXml(attributeOf(xml, 'AssertionConsumerServiceURL')),
    destination: unescapeXml(attributeOf(xml, 'Destination')),
    issuedAt: new Date(attributeOf(xml, 'IssueInstant')),
  }
}

/** Builds an identity provider without pages. */
export async function buildFakeIdp({ origin, now }: { origin: string; now: () => Date }): Promise<FakeIdp> {
  const key = await createSamlKey()
  let count = 0
  const entityId = `${origin}/entity`
  const ssoUrl = `${origin}/sso`
  const bare = key.certificate.replace(/-----[A-Z ]+-----/g, '')
  const idp: FakeIdp = {
    entityId,
    ssoUrl,
    key,
    metadata: `<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="${entityId}"><IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"><KeyDescriptor use="signing"><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>${bare}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></KeyDescriptor><SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="${ssoUrl}"/></IDPSSODescriptor></EntityDescriptor>`,
    person: { nameId: 'u-1', attributes: {} },
    now,
    readRequest,
    answer: (request, change = {}) => {
      count += 1
      const [at, inResponseTo] = [idp.now(), request.id]
      const assertion = buildAssertion({
        id: `_assertion${count}`,
        issuer: entityId,
        audience: request.issuer,
        recipient: request.acsUrl,
        inResponseTo,
        nameId: idp.person.nameId,
        nameIdFormat: 'urn:oasis:names:tc:SAML:2.0:nameid-format:persistent',
        attributes: idp.person.attributes,
        issuedAt: at,
        notBefore: at,
        notOnOrAfter: new Date(at.getTime() + 300_000),
        ...change.facts,
      })
      const signed = signElement(assertion, { key: key.key, ...change.signing })
      const facts = { id: `_response${count}`, issuer: entityId, destination: request.acsUrl, inResponseTo }
      return encodeResponse(buildResponse({ ...facts, issuedAt: at, ...change.response }, signed))
    },
  }
  return idp
}

/** Starts an identity provider on a free port of the loopback. Its page signs the person in by one button. */
export async function startFakeIdp(now: () => Date): Promise<FakeIdp & AsyncDisposable> {
  const server = createServer((request, response) => {
    const read = readRequest(`http://${request.headers.host}${request.url}`)
    const form = `<form method="post" action="${read.acsUrl}"><input type="hidden" name="SAMLResponse" value="${idp.answer(read)}"><button>Sign in as ${idp.person.nameId}</button></form>`
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(`<!doctype html><title>Identity provider</title>${form}`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const idp = await buildFakeIdp({ origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, now })
  return Object.assign(idp, {
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  })
}
