import { verify, X509Certificate } from 'node:crypto'
import { childrenOf, listElements, textOf, type XmlElement } from '../xml/xml-document.ts'

const HASHES: Readonly<Record<string, string>> = {
  'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256': 'sha256',
  'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512': 'sha512',
}

/** Whether this algorithm signs (docs/contract/saml.md#algorithms): RSA with SHA-256 or SHA-512. */
export const isSignatureMethod = (algorithm: string): boolean => Object.hasOwn(HASHES, algorithm)

/**
 * The certificates that have signed what these signatures list; undefined when one of them is signed by none. The digest
 * of the assertion is not checked here. So a message of a stranger costs a parse and a few RSA operations, and only what
 * the identity provider has signed reaches the library, which searches and transforms documents. Pure.
 */
export function findSigners(
  certificates: readonly string[],
  { text, signatures }: { text: string; signatures: readonly XmlElement[] },
): string[] | undefined {
  const found = signatures.map((signature) => {
    const [signedInfo] = childrenOf(signature, 'signature', 'SignedInfo')
    const [value] = childrenOf(signature, 'signature', 'SignatureValue')
    const [method] = signedInfo ? childrenOf(signedInfo, 'signature', 'SignatureMethod') : []
    const hash = HASHES[method?.attributes.get('Algorithm') ?? '']
    if (!signedInfo || !value || hash === undefined) return undefined
    const data = Buffer.from(canonicalize(text, signedInfo))
    const signed = Buffer.from(textOf(value) ?? '', 'base64')
    return certificates.find((certificate) => verify(hash, data, new X509Certificate(certificate).publicKey, signed))
  })
  return found.length > 0 && found.every((signer) => signer !== undefined) ? [...new Set(found)] : undefined
}

/** The canonical form (exclusive XML canonicalization 1.0) of a checked element: no attribute has a namespace. */
function canonicalize(text: string, element: XmlElement): string {
  const elements = listElements(element).values()
  const open: { name: string; rendered: ReadonlyMap<string, string> }[] = []
  let written = ''
  for (const part of text.slice(element.start, element.end).split(/(?=<)|(?<=>)/)) {
    if (!part.startsWith('<')) {
      // The reader has replaced references in the tree, and the form has none: base64 and white space.
      written += part.replaceAll('>', '&gt;')
      continue
    }
    if (part.startsWith('</')) {
      written += `</${open.pop()?.name}>`
      continue
    }
    const { value } = elements.next()
    const started = startTag(value as XmlElement, open.at(-1)?.rendered ?? new Map())
    written += started.tag
    if (part.endsWith('/>')) written += `</${value?.qualifiedName}>`
    else open.push({ name: value?.qualifiedName ?? '', rendered: started.rendered })
  }
  return written
}

function startTag({ qualifiedName, namespace, attributes }: XmlElement, rendered: ReadonlyMap<string, string>) {
  const prefix = qualifiedName.includes(':') ? qualifiedName.slice(0, qualifiedName.indexOf(':')) : ''
  const isNew = rendered.get(prefix) !== namespace
  const declaration = isNew ? ` xmlns${prefix && ':'}${prefix}="${escapeValue(namespace)}"` : ''
  const sorted = [...attributes].toSorted(([name], [other]) => (name < other ? -1 : 1))
  const written = sorted.map(([name, value]) => ` ${name}="${escapeValue(value)}"`)
  return {
    tag: `<${qualifiedName}${declaration}${written.join('')}>`,
    rendered: isNew ? new Map([...rendered, [prefix, namespace]]) : rendered,
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '"': '&quot;',
  '\t': '&#x9;',
  '\n': '&#xA;',
  '\r': '&#xD;',
}
const escapeValue = (value: string): string => value.replace(/[&<"\t\n\r]/g, (character) => ESCAPES[character] ?? '')
