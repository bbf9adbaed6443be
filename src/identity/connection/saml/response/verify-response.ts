import { parseXml } from '../xml/parse-xml.ts'
import { XML_LIMITS } from '../xml/xml-fault.ts'
import { checkAssertion, type Expected } from './read-assertion.ts'
import { type AttributeNames, readPerson, type SamlPerson } from './read-person.ts'
import { checkResponseShape, type ResponseShape } from './response-shape.ts'
import { refuse, type SamlRefused } from './saml-refusal.ts'
import { verifySignature } from './verify-signature.ts'

/** A proven person, and the assertion that proves it. */
export interface SamlProof {
  person: SamlPerson
  assertionId: string
  /** The certificates of the provider that signed, PEM. */
  signers: string[]
  /** Time until which the id of the assertion is kept, so that it is used once. */
  endsAt: Date
}

/** The settings of a connection that verify a response. */
export interface Verification extends Expected {
  /** Certificates of the identity provider, PEM. */
  certificates: readonly string[]
  attributes: AttributeNames
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/** Longest `SAMLResponse`, in characters: base64 of the longest document, with line ends. */
export const RESPONSE_LIMIT = Math.ceil((XML_LIMITS.bytes * 4) / 3 / 64) * 66

/** A response of the accepted form, of which nothing is proven yet. */
export interface ReadResponse {
  text: string
  shape: ResponseShape
}

/** Reads the `SAMLResponse` of a form strictly (docs/contract/saml.md#form). Pure. */
export function readResponse(encoded: string): ReadResponse | SamlRefused {
  if (encoded.length > RESPONSE_LIMIT) return refuse('too_large')
  const base64 = encoded.replace(/[\r\n]/g, '')
  if (!BASE64.test(base64)) return refuse('not_base64')
  const document = parseXml(Buffer.from(base64, 'base64'), { comments: 'refuse' })
  if (typeof document === 'string') return refuse(document)
  const shape = checkResponseShape(document.root)
  return 'refusal' in shape ? shape : { text: document.text, shape }
}

/** Verifies a response, then what was signed (docs/contract/saml.md#checks). The database knows used assertions. */
export async function verifyResponse(
  { text, shape }: ReadResponse,
  wanted: Verification,
): Promise<SamlProof | SamlRefused> {
  const bound = checkBinding(shape, wanted)
  if (bound) return bound
  const verified = await verifySignature(wanted.certificates, { text, shape })
  if (!verified) return refuse('signature_invalid')
  const assertion = parseXml(Buffer.from(verified.signed), { comments: 'refuse' })
  if (typeof assertion === 'string') return refuse(assertion)
  const checked = checkAssertion(assertion.root, wanted)
  if ('refusal' in checked) return checked
  if (checked.id !== shape.assertionId) return refuse('signature_form', 'ID')
  const person = readPerson(checked, wanted.attributes)
  if ('refusal' in person) return person
  return { person, assertionId: checked.id, signers: verified.signers, endsAt: checked.endsAt }
}

/** The attributes of the response itself. They may be unsigned, so the assertion is checked for the same. */
function checkBinding(shape: ResponseShape, wanted: Expected): SamlRefused | undefined {
  if (shape.inResponseTo !== wanted.requestId) return refuse('other_request')
  if (shape.destination !== null || shape.isSigned)
    if (shape.destination !== wanted.recipient) return refuse('other_recipient', shape.destination ?? '')
  if (shape.issuer !== null && shape.issuer !== wanted.issuer) return refuse('issuer_unknown', shape.issuer)
  return undefined
}
