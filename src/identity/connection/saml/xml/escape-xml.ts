const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\t': '&#x9;',
  '\n': '&#xA;',
  '\r': '&#xD;',
}

/** A text for an attribute or an element of XML. Pure. */
export const escapeXml = (text: string): string =>
  text.replace(/[&<>"\t\n\r]/g, (character) => ESCAPES[character] ?? '')
