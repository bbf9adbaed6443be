import type { FieldParams } from '../../../../http/problem/field-error.ts'
import { parseXml } from '../xml/parse-xml.ts'
import { childrenOf, isElement, textOf, type XmlElement } from '../xml/xml-document.ts'
import { XML_LIMITS, type XmlFault } from '../xml/xml-fault.ts'
import { CERTIFICATE_LIMIT, type CertificateFault, readCertificate } from './idp-certificate.ts'

/** The settings of an identity provider, as its metadata has them. */
export interface IdpMetadata {
  entityId: string
  ssoUrl: string
  /** PEM. */
  certificates: string[]
  /** Whether the provider asks for signed requests, which the service does not send. */
  wantsSignedRequests: boolean
}

/** Refusal of metadata: a code, and a sentence with the remedy. */
export interface MetadataFault {
  code:
    | XmlFault
    | 'several_entities'
    | 'not_metadata'
    | 'no_identity_provider'
    | 'no_redirect'
    | CertificateFault['code']
  message: string
  params?: FieldParams
}

const PROTOCOL = 'urn:oasis:names:tc:SAML:2.0:protocol'
const REDIRECT = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect'

/** Longest entity id, in characters (SAML 2.0 core, 8.3.6). */
const ENTITY_ID_LIMIT = 1_024

/** Reads metadata (SAML 2.0 metadata, 2.4.3). An administrator vouched for it: its signature is not verified. Pure. */
export function readIdpMetadata(bytes: Uint8Array, now: Date): IdpMetadata | MetadataFault {
  const document = parseXml(bytes, { comments: 'skip' })
  if (typeof document === 'string')
    return {
      ...{ code: document, message: describeFault(document) },
      ...(document === 'too_large' && { params: { bytes: XML_LIMITS.bytes } }),
    }
  const { root } = document
  if (isElement(root, 'metadata', 'EntitiesDescriptor'))
    return { code: 'several_entities', message: 'must be the metadata of one entity, not of a federation' }
  const entityId = root.attributes.get('entityID') ?? ''
  const isEntity = isElement(root, 'metadata', 'EntityDescriptor')
  if (!isEntity || entityId === '' || entityId.length > ENTITY_ID_LIMIT)
    return { code: 'not_metadata', message: 'must be a SAML 2.0 EntityDescriptor with an entityID' }
  const validUntil = root.attributes.get('validUntil')
  if (validUntil !== undefined && !(Date.parse(validUntil) > now.getTime()))
    return { code: 'not_metadata', message: 'must not be out of date: its validUntil has passed' }
  const idp = childrenOf(root, 'metadata', 'IDPSSODescriptor').find(({ attributes }) =>
    (attributes.get('protocolSupportEnumeration') ?? '').split(' ').includes(PROTOCOL),
  )
  if (!idp) return { code: 'no_identity_provider', message: 'must have an IDPSSODescriptor of SAML 2.0' }
  return readDescriptor(idp, entityId)
}

function readDescriptor(idp: XmlElement, entityId: string): IdpMetadata | MetadataFault {
  const services = childrenOf(idp, 'metadata', 'SingleSignOnService')
  const ssoUrl = services.find(({ attributes }) => attributes.get('Binding') === REDIRECT)?.attributes.get('Location')
  if (ssoUrl === undefined)
    return { code: 'no_redirect', message: 'must have a SingleSignOnService with the binding HTTP-Redirect' }
  const texts = childrenOf(idp, 'metadata', 'KeyDescriptor')
    .filter(({ attributes }) => (attributes.get('use') ?? 'signing') === 'signing')
    .flatMap((key) => descend(key, ['KeyInfo', 'X509Data', 'X509Certificate']))
    .map((element) => textOf(element) ?? '')
  const read = [...new Set(texts)].map(readCertificate)
  const fault = read.find((found) => 'code' in found)
  if (fault) return { ...fault, message: `its signing certificate ${fault.message}` }
  const certificates = read.flatMap((found) => ('pem' in found ? [found.pem] : []))
  if (certificates.length === 0 || certificates.length > CERTIFICATE_LIMIT)
    return { code: 'not_metadata', message: `must have 1 to ${CERTIFICATE_LIMIT} signing certificates` }
  const wantsSignedRequests = ['true', '1'].includes(idp.attributes.get('WantAuthnRequestsSigned') ?? '')
  return { entityId, ssoUrl, certificates, wantsSignedRequests }
}

/** The elements of the namespace of signatures at a path of children. */
function descend(element: XmlElement, path: readonly string[]): XmlElement[] {
  return path.reduce<XmlElement[]>(
    (found, name) => found.flatMap((element) => childrenOf(element, 'signature', name)),
    [element],
  )
}

function describeFault(fault: XmlFault): string {
  if (fault === 'too_large') return 'must have 128 KiB at most'
  if (fault === 'declaration_not_allowed')
    return 'must be XML without a document type, entities, CDATA and processing instructions'
  return `must be well-formed XML in UTF-8 (${fault})`
}
