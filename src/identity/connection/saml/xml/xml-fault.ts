/** Bounds of a document. Genuine responses have some 50 elements in 8 levels, and 200 groups of 256 characters at most. */
export const XML_LIMITS = { bytes: 131_072, depth: 32, elements: 2_048, attributes: 32 } as const

/** Reasons for which a document is refused. */
export type XmlFault =
  | 'too_large'
  | 'not_utf8'
  | 'not_xml'
  | 'too_deep'
  | 'too_many_elements'
  | 'declaration_not_allowed'
  | 'comment_not_allowed'

/** Ends the reading of a document. Caught by `parseXml`. */
export class XmlError extends Error {
  readonly fault: XmlFault
  constructor(fault: XmlFault) {
    super(fault)
    this.fault = fault
  }
}

/** Ends the reading. */
export const failXml = (fault: XmlFault): never => {
  throw new XmlError(fault)
}
