import { isSpace, type XmlElement } from './xml-document.ts'
import { failXml, XML_LIMITS } from './xml-fault.ts'

/** An element whose end was not read yet. */
interface OpenElement extends XmlElement {
  children: XmlElement[]
  declared: Map<string, string>
}

interface Reader {
  text: string
  at: number
  open: OpenElement[]
  elements: number
  comments: 'refuse' | 'skip'
}

const NAME = /[A-Za-z_][A-Za-z0-9_.-]*(?::[A-Za-z_][A-Za-z0-9_.-]*)?/y
const XML_NAMESPACE = 'http://www.w3.org/XML/1998/namespace'

/** Reads the markup of a document. Throws an `XmlError`. */
export function readMarkup(text: string, { comments }: { comments: 'refuse' | 'skip' }): XmlElement {
  const reader: Reader = { text, at: 0, open: [], elements: 0, comments }
  let root: XmlElement | undefined
  while (reader.at < text.length) {
    const parent = reader.open.at(-1)
    if (text[reader.at] !== '<') {
      const run = readText(reader)
      if (parent) parent.text += run
      else if (!/^[ \t\n\r]*$/.test(run)) failXml('not_xml')
      continue
    }
    if (skipComment(reader)) continue
    if (text[reader.at + 1] === '/') {
      readEnd(reader)
      continue
    }
    if (!parent && root) failXml('not_xml')
    root ??= readStart(reader, parent)
    if (parent) readStart(reader, parent)
  }
  if (!root || reader.open.length > 0) return failXml('not_xml')
  return root
}

/** The text up to the next markup, with its references replaced. */
function readText(reader: Reader): string {
  const end = reader.text.indexOf('<', reader.at)
  const raw = reader.text.slice(reader.at, end === -1 ? undefined : end)
  if (raw.includes(']]>') || (reader.open.length === 0 && raw.includes('&'))) failXml('not_xml')
  reader.at += raw.length
  return replaceReferences(raw)
}

/** Skips a comment where that is allowed. Everything else that begins with `<!` or `<?` is a fault. */
function skipComment(reader: Reader): boolean {
  const next = reader.text[reader.at + 1]
  if (next === '?') failXml('declaration_not_allowed')
  if (next !== '!') return false
  if (!reader.text.startsWith('<!--', reader.at)) failXml('declaration_not_allowed')
  if (reader.comments === 'refuse') failXml('comment_not_allowed')
  const end = reader.text.indexOf('--', reader.at + 4)
  if (end === -1 || reader.text[end + 2] !== '>') failXml('not_xml')
  reader.at = end + 3
  return true
}

function readEnd(reader: Reader): void {
  reader.at += 2
  // White space may follow in XML; no message has any, and parsers differ.
  const name = readName(reader)
  const ended = reader.open.pop()
  if (reader.text[reader.at] !== '>' || ended?.qualifiedName !== name) failXml('not_xml')
  reader.at += 1
  if (ended) ended.end = reader.at
}

function readStart(reader: Reader, parent: OpenElement | undefined): XmlElement {
  const start = reader.at
  reader.at += 1
  reader.elements += 1
  if (reader.elements > XML_LIMITS.elements) failXml('too_many_elements')
  if (reader.open.length >= XML_LIMITS.depth) failXml('too_deep')
  const qualifiedName = readName(reader)
  const attributes = readAttributes(reader)
  const element = { ...buildElement(reader, qualifiedName, attributes), start }
  parent?.children.push(element)
  if (reader.text[reader.at] === '/') reader.at += 1
  else reader.open.push(element)
  if (reader.text[reader.at] !== '>') failXml('not_xml')
  reader.at += 1
  element.end = reader.at
  return element
}

/** Attributes as they are written, by qualified name. */
function readAttributes(reader: Reader): Map<string, string> {
  const attributes = new Map<string, string>()
  while (true) {
    const hasSpace = skipSpace(reader)
    const next = reader.text[reader.at]
    if (next === '>' || next === '/') return attributes
    if (!hasSpace || attributes.size >= XML_LIMITS.attributes) failXml('not_xml')
    const name = readName(reader)
    skipSpace(reader)
    if (reader.text[reader.at] !== '=') failXml('not_xml')
    reader.at += 1
    skipSpace(reader)
    const quote = reader.text[reader.at]
    const end = quote === '"' || quote === "'" ? reader.text.indexOf(quote, reader.at + 1) : -1
    const raw = end === -1 ? failXml('not_xml') : reader.text.slice(reader.at + 1, end)
    if (raw.includes('<') || attributes.has(name)) failXml('not_xml')
    attributes.set(name, replaceReferences(raw.replace(/[\t\n]/g, ' ')))
    reader.at = end + 1
  }
}

function buildElement(reader: Reader, qualifiedName: string, written: Map<string, string>): Omit<OpenElement, 'start'> {
  const declared = new Map<string, string>()
  for (const [name, value] of written) {
    if (name !== 'xmlns' && !name.startsWith('xmlns:')) continue
    const prefix = name === 'xmlns' ? '' : name.slice(6)
    const isReserved = prefix === 'xml' || prefix === 'xmlns' || value === XML_NAMESPACE
    if (isReserved || (prefix !== '' && value === '')) failXml('not_xml')
    declared.set(prefix, value)
  }
  const [attributes, foreignAttributes] = [new Map<string, string>(), new Map<string, string>()]
  for (const [name, value] of written) {
    const colon = name.indexOf(':')
    if (name === 'xmlns' || name.startsWith('xmlns:')) continue
    if (colon === -1) {
      attributes.set(name, value)
      continue
    }
    const resolved = `{${findNamespace(reader, declared, name.slice(0, colon))}}${name.slice(colon + 1)}`
    if (foreignAttributes.has(resolved)) failXml('not_xml')
    foreignAttributes.set(resolved, value)
  }
  const colon = qualifiedName.indexOf(':')
  const namespace = findNamespace(reader, declared, qualifiedName.slice(0, Math.max(colon, 0)))
  const name = qualifiedName.slice(colon + 1)
  return { name, qualifiedName, namespace, attributes, foreignAttributes, children: [], text: '', end: 0, declared }
}

function findNamespace({ open }: Reader, declared: Map<string, string>, prefix: string): string {
  if (prefix === 'xml') return XML_NAMESPACE
  const own = declared.get(prefix)
  if (own !== undefined) return own
  for (let index = open.length - 1; index >= 0; index -= 1) {
    const found = open[index]?.declared.get(prefix)
    if (found !== undefined) return found
  }
  return prefix === '' ? '' : failXml('not_xml')
}

function readName(reader: Reader): string {
  NAME.lastIndex = reader.at
  const name = NAME.exec(reader.text)?.[0] ?? failXml('not_xml')
  reader.at += name.length
  return name
}

/** Whether there was any. */
function skipSpace(reader: Reader): boolean {
  const start = reader.at
  while (isSpace(reader.text.charCodeAt(reader.at))) reader.at += 1
  return reader.at > start
}

const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Replaces each `&...;` once. A reference to anything but a character of XML is a fault, an unknown entity too. */
function replaceReferences(raw: string): string {
  if (!raw.includes('&')) return raw
  return raw.replace(/&([^;&]{0,12})(;?)/g, (_match, name: string, end: string) => {
    if (end === '') return failXml('not_xml')
    if (!name.startsWith('#')) return NAMED[name] ?? failXml('declaration_not_allowed')
    const number = /^#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}))$/.exec(name)
    const code = Number.parseInt(number?.[1] ?? number?.[2] ?? '0', number?.[1] === undefined ? 10 : 16)
    return isCharacter(code) ? String.fromCodePoint(code) : failXml('not_xml')
  })
}

/** As `NO_CHARACTER` of the text. */
function isCharacter(code: number): boolean {
  if (code === 0x85 || code === 0x2028) return false
  if (code === 0x09 || code === 0x0a || code === 0x0d) return true
  return (code >= 0x20 && code <= 0xd7ff) || (code >= 0xe000 && code <= 0xfffd) || (code >= 0x10000 && code <= 0x10ffff)
}
