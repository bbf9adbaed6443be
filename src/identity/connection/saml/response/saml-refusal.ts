import type { XmlFault } from '../xml/xml-fault.ts'

/** Reasons for which a response is refused. Log and audit entry use these words (docs/contract/saml.md#refusals). */
export type SamlRefusal =
  | XmlFault
  | 'not_base64'
  // The form of the response.
  | 'not_a_response'
  | 'unexpected_element'
  | 'id_repeated'
  | 'assertion_missing'
  | 'assertion_repeated'
  | 'assertion_encrypted'
  // Its signature.
  | 'assertion_unsigned'
  | 'signature_form'
  | 'algorithm_not_allowed'
  | 'signature_invalid'
  // Its binding to our request.
  | 'idp_refused'
  | 'issuer_unknown'
  | 'unsolicited'
  | 'other_request'
  | 'other_recipient'
  | 'other_audience'
  | 'confirmation_missing'
  // Its time.
  | 'not_yet_valid'
  | 'expired'
  | 'lifetime_too_long'
  | 'replayed'
  // The person.
  | 'subject_missing'
  | 'subject_transient'
  | 'attribute_repeated'
  | 'attribute_invalid'
  | 'email_missing'

/** A refusal, with what an operator needs to know of the values that disagree. Never holds an assertion. */
export interface SamlRefused {
  refusal: SamlRefusal
  /** The value of the response that is refused, such as its audience; shortened, and safe in a log line. */
  detail: string | null
}

const DETAIL_LIMIT = 200

/** Builds a refusal. Pure. */
export function refuse(refusal: SamlRefusal, detail: string | null = null): SamlRefused {
  return { refusal, detail: detail === null ? null : detail.replace(/[^\x20-\x7e]/g, '?').slice(0, DETAIL_LIMIT) }
}
