import { isElement, listElements, textOf, type XmlElement } from '../xml/xml-document.ts'
import { refuse, type SamlRefused } from './saml-refusal.ts'
import { isSignatureMethod } from './signed-info.ts'

const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#'
const ENVELOPED = 'http://www.w3.org/2000/09/xmldsig#enveloped-signature'

const DIGEST_METHODS = new Set(['http://www.w3.org/2001/04/xmlenc#sha256', 'http://www.w3.org/2001/04/xmlenc#sha512'])

const BASE64 = /^[A-Za-z0-9+/= \t\n\r]+$/

/** Ids that need no escaping in any search. */
const ID = /^[A-Za-z_][A-Za-z0-9_.-]{0,255}$/

/**
 * Checks the form of a signature of the element with this id: one reference, to that element, with the two transforms
 * of SAML and no other, by algorithms that are allowed (SAML 2.0 core, 5.4). A key in it is ignored. Pure.
 */
export function checkSignatureShape(signature: XmlElement, id: string | undefined): SamlRefused | undefined {
  const malformed = (what: string) => refuse('signature_form', what)
  if (id === undefined || !ID.test(id)) return malformed('ID')
  const parts = takeChildren(signature, ['SignedInfo', 'SignatureValue'], 'KeyInfo')
  const [signedInfo, value] = parts ?? []
  if (!signedInfo || !value || !isBase64(value)) return malformed('Signature')
  const [canonical, method, reference] =
    takeChildren(signedInfo, ['CanonicalizationMethod', 'SignatureMethod', 'Reference']) ?? []
  if (!canonical || !method || !reference || !isBare(canonical) || !isBare(method)) return malformed('SignedInfo')
  if (reference.attributes.get('URI') !== `#${id}`) return malformed('Reference')
  const [transforms, digestMethod, digestValue] =
    takeChildren(reference, ['Transforms', 'DigestMethod', 'DigestValue']) ?? []
  if (!transforms || !digestMethod || !digestValue || !isBare(digestMethod) || !isBase64(digestValue))
    return malformed('Reference')
  if (listElements(signedInfo).some(({ foreignAttributes }) => foreignAttributes.size > 0))
    return malformed('SignedInfo')
  if (!areTransforms(transforms)) return malformed('Transforms')
  return checkAlgorithms({ canonical, method, digestMethod })
}

/** The children, when they are these in this order and nothing else, with an optional last one. */
function takeChildren(element: XmlElement, names: string[], last?: string): XmlElement[] | undefined {
  const expected = last !== undefined && element.children.length > names.length ? [...names, last] : names
  const isSame =
    element.children.length === expected.length &&
    expected.every((name, index) => isElement(element.children[index]!, 'signature', name))
  return isSame ? [...element.children] : undefined
}

const isBare = (element: XmlElement) => element.children.length === 0
const isBase64 = (element: XmlElement) => BASE64.test(textOf(element) ?? '')
const algorithmOf = (element: XmlElement) => element.attributes.get('Algorithm') ?? ''

function areTransforms(transforms: XmlElement): boolean {
  const [enveloped, exclusive] = takeChildren(transforms, ['Transform', 'Transform']) ?? []
  if (!enveloped || !exclusive || !isBare(enveloped)) return false
  const isPrefixList = ({ name, namespace }: XmlElement) => name === 'InclusiveNamespaces' && namespace === EXCLUSIVE
  return (
    algorithmOf(enveloped) === ENVELOPED &&
    algorithmOf(exclusive) === EXCLUSIVE &&
    exclusive.children.length <= 1 &&
    exclusive.children.every((child) => isPrefixList(child) && isBare(child))
  )
}

function checkAlgorithms(of: {
  canonical: XmlElement
  method: XmlElement
  digestMethod: XmlElement
}): SamlRefused | undefined {
  const [canonical, method, digest] = [algorithmOf(of.canonical), algorithmOf(of.method), algorithmOf(of.digestMethod)]
  if (canonical !== EXCLUSIVE) return refuse('algorithm_not_allowed', canonical)
  if (!isSignatureMethod(method)) return refuse('algorithm_not_allowed', method)
  if (!DIGEST_METHODS.has(digest)) return refuse('algorithm_not_allowed', digest)
  return undefined
}
