/** An element. Names are resolved: `namespace` is the URI, empty for none. */
export interface XmlElement {
  name: string
  /** The name as it is written, with its prefix. */
  qualifiedName: string
  namespace: string
  /** Attributes without a namespace, by name. Declarations of namespaces are not among them. */
  attributes: ReadonlyMap<string, string>
  /** Attributes with a namespace: `{namespace}name`. */
  foreignAttributes: ReadonlyMap<string, string>
  children: readonly XmlElement[]
  /** The text of the element alone, without that of its children. */
  text: string
  /** Position of the element in the text of the document. */
  start: number
  end: number
}

/** Namespaces of the messages. */
export const NAMESPACES = {
  protocol: 'urn:oasis:names:tc:SAML:2.0:protocol',
  assertion: 'urn:oasis:names:tc:SAML:2.0:assertion',
  metadata: 'urn:oasis:names:tc:SAML:2.0:metadata',
  signature: 'http://www.w3.org/2000/09/xmldsig#',
} as const

/** Whether the element has this name, in this namespace. */
export function isElement(element: XmlElement, kind: keyof typeof NAMESPACES, name: string): boolean {
  return element.name === name && element.namespace === NAMESPACES[kind]
}

/** The children with this name, in this namespace. */
export function childrenOf(element: XmlElement, kind: keyof typeof NAMESPACES, name: string): XmlElement[] {
  return element.children.filter((child) => isElement(child, kind, name))
}

/** The text of an element that has no children, without white space around it; undefined when it has children. */
export function textOf(element: XmlElement): string | undefined {
  return element.children.length === 0 ? trimSpace(element.text) : undefined
}

/** Only the white space of XML: `trim()` would remove other characters, which are part of a name. */
function trimSpace(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && isSpace(text.charCodeAt(start))) start += 1
  while (end > start && isSpace(text.charCodeAt(end - 1))) end -= 1
  return text.slice(start, end)
}

/** Space, tab, line feed, carriage return. */
export function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d
}

/** Every element of a document, in its order. */
export function listElements(root: XmlElement): XmlElement[] {
  const [found, open] = [[] as XmlElement[], [root]]
  for (let element = open.pop(); element; element = open.pop()) {
    found.push(element)
    for (let index = element.children.length - 1; index >= 0; index -= 1) open.push(element.children[index]!)
  }
  return found
}
