import { readMarkup } from './read-markup.ts'
import type { XmlElement } from './xml-document.ts'
import { failXml, XML_LIMITS, XmlError, type XmlFault } from './xml-fault.ts'

/** A document: its root, and the text that was read, with the line ends of XML and without its declaration. */
export interface XmlDocument {
  root: XmlElement
  text: string
}

/** Characters that are none of XML 1.0, and the two that are line ends of XML 1.1 alone, which parsers replace. */
const NO_CHARACTER = /[^\t\n\r\u0020-\u0084\u0086-\u2027\u2029-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u

const DECLARATION =
  /^<\?xml version=(?:"1\.0"|'1\.0')(?: encoding=(?:"utf-8"|'utf-8'))?(?: standalone=(?:"yes"|"no"|'yes'|'no'))?[ \n]?\?>/i

/**
 * Reads a document in the part of XML that messages need: elements, attributes, text, the five named entities and
 * references to characters. Everything on which two parsers may disagree is a fault: a document type, an entity, a
 * processing instruction, a CDATA section, a name outside of ASCII, and, unless `comments` is `skip`, a comment
 * (docs/contract/saml.md#strict-reading). Linear in the size. Pure.
 */
export function parseXml(bytes: Uint8Array, options: { comments: 'refuse' | 'skip' }): XmlDocument | XmlFault {
  if (bytes.length > XML_LIMITS.bytes) return 'too_large'
  try {
    const decoded = decode(bytes).replace(/\r\n?/g, '\n')
    const text = decoded.slice(DECLARATION.exec(decoded)?.[0].length ?? 0)
    if (NO_CHARACTER.test(text)) return 'not_xml'
    return { root: readMarkup(text, options), text }
  } catch (error) {
    if (error instanceof XmlError) return error.fault
    throw error
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return failXml('not_utf8')
  }
}
