import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseXml } from './parse-xml.ts'
import { childrenOf, isElement, listElements, textOf } from './xml-document.ts'
import { XML_LIMITS } from './xml-fault.ts'

const read = (text: string | Uint8Array, comments: 'refuse' | 'skip' = 'refuse') =>
  parseXml(typeof text === 'string' ? Buffer.from(text) : text, { comments })

describe('a document', () => {
  test('is read with its namespaces, attributes and text', () => {
    const document = read(`<?xml version="1.0" encoding="UTF-8"?>\r
<p:a xmlns:p="urn:oasis:names:tc:SAML:2.0:protocol" xmlns="urn:d" x='1 &quot;2&quot;' p:x="y">
  <b> R&amp;D &#65;&#x42; </b><c xmlns=""/><p:d/>
</p:a>
`)
    if (typeof document === 'string') throw new Error(document)
    const { root } = document
    expect(isElement(root, 'protocol', 'a')).toBe(true)
    expect([...root.attributes]).toEqual([['x', '1 "2"']])
    expect([...root.foreignAttributes]).toEqual([['{urn:oasis:names:tc:SAML:2.0:protocol}x', 'y']])
    expect(root.children.map(({ name, namespace }) => [name, namespace])).toEqual([
      ['b', 'urn:d'],
      ['c', ''],
      ['d', 'urn:oasis:names:tc:SAML:2.0:protocol'],
    ])
    expect(textOf(root.children[0]!)).toBe('R&D AB')
    expect(textOf(root)).toBeUndefined()
    expect(childrenOf(root, 'protocol', 'd')).toHaveLength(1)
    expect(listElements(root).map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd'])
    expect(document.text.startsWith('\n<p:a')).toBe(true)
  })

  test('has its comments skipped where they are allowed, and no text is cut by one', () => {
    const document = read('<!-- a --><a>x<!-- <b> -->y</a><!---->', 'skip')
    expect(typeof document === 'string' ? document : textOf(document.root)).toBe('xy')
    expect(read('<a><!-- a -- b --></a>', 'skip')).toBe('not_xml')
    expect(read('<a><!-- a', 'skip')).toBe('not_xml')
  })

  test.each<[string, string, string]>([
    ['a comment', 'comment_not_allowed', '<a>admin@example.com<!---->.evil.com</a>'],
    ['a processing instruction', 'declaration_not_allowed', '<a>admin<?x ?>.evil.com</a>'],
    ['a style sheet', 'declaration_not_allowed', '<?xml-stylesheet href="https://evil.example"?><a/>'],
    ['CDATA', 'declaration_not_allowed', '<a><![CDATA[admin]]></a>'],
    ['a document type', 'declaration_not_allowed', '<!DOCTYPE a SYSTEM "https://evil.example/a.dtd"><a/>'],
    ['entities', 'declaration_not_allowed', '<!DOCTYPE a [<!ENTITY b "&c;&c;">]><a>&b;</a>'],
    ['an unknown entity', 'declaration_not_allowed', '<a>&nbsp;</a>'],
    ['an entity in an attribute', 'declaration_not_allowed', '<a b="&x;"/>'],
    ['a bare ampersand', 'not_xml', '<a>R&D</a>'],
    ['a reference to no character', 'not_xml', '<a>&#0;</a>'],
    ['a reference to half a character', 'not_xml', '<a>&#xD800;</a>'],
    ['a reference beyond Unicode', 'not_xml', '<a>&#x110000;</a>'],
    ['a line end of XML 1.1', 'not_xml', '<a>admin\u0085</a>'],
    ['another line end of XML 1.1', 'not_xml', '<a>admin&#x2028;</a>'],
    ['a control character', 'not_xml', '<a>\u0001</a>'],
    ['two roots', 'not_xml', '<a/><b/>'],
    ['text after its root', 'not_xml', '<a/>x'],
    ['text before its root', 'not_xml', 'x<a/>'],
    ['a reference outside of its root', 'not_xml', '&#32;<a/>'],
    ['no root', 'not_xml', ' '],
    ['an open element', 'not_xml', '<a><b></b>'],
    ['crossed elements', 'not_xml', '<a><b></a></b>'],
    ['white space in an end', 'not_xml', '<a></a >'],
    ['an end without a start', 'not_xml', '</a>'],
    ['an end that differs in its prefix', 'not_xml', '<p:a xmlns:p="x" xmlns:q="x"></q:a>'],
    ['an attribute twice', 'not_xml', '<a b="1" b="2"/>'],
    ['an attribute twice by two prefixes', 'not_xml', '<a xmlns:p="x" xmlns:q="x" p:b="1" q:b="2"/>'],
    ['an attribute without quotes', 'not_xml', '<a b=1/>'],
    ['an attribute without a value', 'not_xml', '<a b/>'],
    ['attributes without space between them', 'not_xml', '<a b="1"c="2"/>'],
    ['markup in an attribute', 'not_xml', '<a b="<c>"/>'],
    ['an unknown prefix', 'not_xml', '<p:a/>'],
    ['an unknown prefix of an attribute', 'not_xml', '<a p:b="1"/>'],
    ['a prefix that is undeclared', 'not_xml', '<a xmlns:p="x"><b xmlns:p=""/></a>'],
    ['another meaning of xml', 'not_xml', '<a xmlns:xml="urn:x"/>'],
    ['another name of xml', 'not_xml', '<a xmlns:p="http://www.w3.org/XML/1998/namespace"/>'],
    ['a name outside of ASCII', 'not_xml', '<\u00e9/>'],
    ['two colons in a name', 'not_xml', '<a:b:c xmlns:a="x"/>'],
    ['an end of CDATA in its text', 'not_xml', '<a>]]></a>'],
    ['a declaration of XML 1.1', 'declaration_not_allowed', '<?xml version="1.1"?><a/>'],
    ['a declaration of another encoding', 'declaration_not_allowed', '<?xml version="1.0" encoding="UTF-7"?><a/>'],
    ['a declaration behind a space', 'declaration_not_allowed', ' <?xml version="1.0"?><a/>'],
  ])('with %s is not read', (_what, fault, text) => {
    expect(read(text)).toBe(fault)
  })

  test('that is no UTF-8 is not read', () => {
    expect(read(Buffer.from('<a>\u00e9</a>', 'latin1'))).toBe('not_utf8')
    expect(read(Buffer.from('<a/>', 'utf16le'))).not.toHaveProperty('root')
    expect(read(Uint8Array.of(0xc0, 0xbc, 0x61, 0x2f, 0x3e))).toBe('not_utf8')
  })
})

describe('the limits of a document', () => {
  const nested = (depth: number) => '<a>'.repeat(depth) + '</a>'.repeat(depth)
  const attributes = (count: number) => `<a${Array.from({ length: count }, (_, at) => ` b${at}=""`).join('')}/>`
  test.each<[string, string, string]>([
    ['depth', nested(XML_LIMITS.depth), nested(XML_LIMITS.depth + 1)],
    ['elements', `<a>${'<b/>'.repeat(XML_LIMITS.elements - 1)}</a>`, `<a>${'<b/>'.repeat(XML_LIMITS.elements)}</a>`],
    ['attributes', attributes(XML_LIMITS.attributes), attributes(XML_LIMITS.attributes + 1)],
    ['bytes', `<a>${'x'.repeat(XML_LIMITS.bytes - 7)}</a>`, `<a>${'x'.repeat(XML_LIMITS.bytes - 6)}</a>`],
  ])('%s', (_what, within, beyond) => {
    expect(read(within)).toHaveProperty('root')
    expect(typeof read(beyond)).toBe('string')
  })
})

test('any text is read or refused, and never throws', () => {
  const pieces = fc.constantFrom(
    ...['<', '>', '/', 'a', 'p:a', '</a>', '<a>', ' b="', '"', "'", '=', '&', '&amp;', '&#', ';', '<!--', '-->', '<?'],
    ...[
      '?>',
      '<![CDATA[',
      ']]>',
      '<!DOCTYPE',
      ' xmlns="x"',
      ' xmlns:p="y"',
      ' ',
      '\r\n',
      '\u0000',
      '\ud800',
      '\u{1f600}',
    ],
  )
  const hostile = fc.array(pieces, { maxLength: 40 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(
      fc.oneof(hostile, fc.string()),
      fc.constantFrom('refuse' as const, 'skip' as const),
      (text, comments) => {
        const found = read(text, comments)
        expect(typeof found === 'string' || found.root.name !== '').toBe(true)
      },
    ),
    { numRuns: 3_000 },
  )
})

test('a document of random elements is read as it was written', () => {
  type Node = { name: string; text: string; value: string; children: Node[] }
  const character = fc.constantFrom(...'abz09<>&"\'=/ ]é\u{1f600}')
  const text = fc.string({ unit: character, maxLength: 8 })
  const name = fc.constantFrom('a', 'b-c', '_d', 'E.1')
  const within = (children: fc.Arbitrary<Node[]>) => fc.record({ name, text, value: text, children })
  const leaf = within(fc.constant([]))
  const node = within(fc.array(within(fc.array(leaf, { maxLength: 3 })), { maxLength: 3 }))
  const escapeText = (raw: string) =>
    raw.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&#62;').replaceAll('"', '&#x22;')
  const write = ({ name, text, value, children }: Node): string =>
    `<${name} v="${escapeText(value)}">${escapeText(text)}${children.map(write).join('')}</${name}>`
  type Found = { name: string; text: string; attributes: ReadonlyMap<string, string>; children: readonly Found[] }
  const back = ({ name, text, attributes, children }: Found): Node => ({
    name,
    text,
    value: attributes.get('v') ?? '',
    children: children.map(back),
  })
  fc.assert(
    fc.property(node, (written) => {
      const document = read(write(written))
      expect(typeof document === 'string' ? document : back(document.root)).toEqual(written)
    }),
  )
})
