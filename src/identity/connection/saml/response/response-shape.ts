import { childrenOf, isElement, listElements, textOf, type XmlElement } from '../xml/xml-document.ts'
import { refuse, type SamlRefused } from './saml-refusal.ts'
import { checkSignatureShape } from './signature-shape.ts'

/** A response of the only form that is verified: nothing of it is proven yet. */
export interface ResponseShape {
  /** `InResponseTo` of the response: the id of our request. */
  inResponseTo: string
  destination: string | null
  issuer: string | null
  /** Whether the response has a signature beside that of its assertion. */
  isSigned: boolean
  signatures: readonly XmlElement[]
  assertionId: string
}

const SUCCESS = 'urn:oasis:names:tc:SAML:2.0:status:Success'

/**
 * Checks the form of a response before its signature is verified (docs/contract/saml.md#form): exactly one assertion,
 * which is a child of the response and has exactly one signature, which covers exactly it; no id twice; no element in
 * which another response, assertion or signature can hide. So what a verifier finds by any search is what is verified.
 * Pure.
 */
export function checkResponseShape(root: XmlElement): ResponseShape | SamlRefused {
  if (!isElement(root, 'protocol', 'Response')) return refuse('not_a_response', root.name)
  if (root.attributes.get('Version') !== '2.0') return refuse('not_a_response', 'Version')
  const status = checkStatus(root)
  if (status) return status
  const elements = listElements(root)
  if (elements.some(({ name }) => name === 'EncryptedAssertion')) return refuse('assertion_encrypted')
  const assertions = elements.filter(({ name }) => name === 'Assertion')
  const [assertion] = assertions
  if (!assertion) return refuse('assertion_missing')
  if (assertions.length > 1) return refuse('assertion_repeated')
  if (!isElement(assertion, 'assertion', 'Assertion') || !root.children.includes(assertion))
    return refuse('unexpected_element', 'Assertion')
  const misplaced = findMisplaced(root, assertion, elements)
  if (misplaced) return refuse('unexpected_element', misplaced)
  if (hasRepeatedId(elements)) return refuse('id_repeated')
  const id = assertion.attributes.get('ID')
  if (!childrenOf(assertion, 'signature', 'Signature').length) return refuse('assertion_unsigned')
  const broken = [root, assertion].map(checkSignatureOf).find((refused) => refused !== undefined)
  if (broken) return broken
  if (id === undefined) return refuse('signature_form', 'ID')
  const inResponseTo = root.attributes.get('InResponseTo')
  if (inResponseTo === undefined) return refuse('unsolicited')
  const [issuer] = childrenOf(root, 'assertion', 'Issuer')
  const [outer, inner] = [root, assertion].map((parent) => childrenOf(parent, 'signature', 'Signature'))
  return {
    inResponseTo,
    destination: root.attributes.get('Destination') ?? null,
    issuer: issuer ? (textOf(issuer) ?? '') : null,
    isSigned: outer?.length === 1,
    signatures: [...(outer ?? []), ...(inner ?? [])],
    assertionId: id,
  }
}

/** A refusal by the identity provider. It needs no proof, since nothing follows from it. */
function checkStatus(root: XmlElement): SamlRefused | undefined {
  const [status, second] = childrenOf(root, 'protocol', 'Status')
  const codes = status ? childrenOf(status, 'protocol', 'StatusCode') : []
  const [code] = codes
  if (!status || second || !code || codes.length > 1) return refuse('not_a_response', 'Status')
  const value = code.attributes.get('Value') ?? ''
  if (value === SUCCESS) return
  const [nested] = childrenOf(code, 'protocol', 'StatusCode')
  const words = [value, nested?.attributes.get('Value') ?? ''].map((uri) => uri.slice(uri.lastIndexOf(':') + 1))
  return refuse('idp_refused', words.filter(Boolean).join(': '))
}

const RESPONSE_CHILDREN = new Set(['Issuer', 'Signature', 'Status', 'Assertion'])
const ASSERTION_CHILDREN = new Set([
  'Issuer',
  'Signature',
  'Subject',
  'Conditions',
  'AuthnStatement',
  'AttributeStatement',
])

function findMisplaced(root: XmlElement, assertion: XmlElement, elements: readonly XmlElement[]): string | undefined {
  const stray = [
    root.children.find(({ name }) => !RESPONSE_CHILDREN.has(name)),
    assertion.children.find(({ name }) => !ASSERTION_CHILDREN.has(name)),
    elements.find((element) => element !== root && element.name === 'Response'),
  ].find((element) => element !== undefined)
  if (stray) return stray.name
  const signatures = elements.filter(({ name }) => name === 'Signature')
  const own = [root, assertion].flatMap((parent) => childrenOf(parent, 'signature', 'Signature'))
  return signatures.length === own.length ? undefined : 'Signature'
}

/** Whether two elements have an id in common, in any spelling that a verifier may look up. */
function hasRepeatedId(elements: readonly XmlElement[]): boolean {
  const ids = elements.flatMap(({ attributes, foreignAttributes }) => [
    ...[...attributes].flatMap(([name, value]) => (name.toLowerCase() === 'id' ? [value] : [])),
    ...[...foreignAttributes].flatMap(([name, value]) => (/\}id$/i.test(name) ? [value] : [])),
  ])
  return new Set(ids).size < ids.length
}

function checkSignatureOf(parent: XmlElement): SamlRefused | undefined {
  const signatures = childrenOf(parent, 'signature', 'Signature')
  if (signatures.length > 1) return refuse('signature_form', 'Signature')
  const [signature] = signatures
  return signature && checkSignatureShape(signature, parent.attributes.get('ID'))
}
