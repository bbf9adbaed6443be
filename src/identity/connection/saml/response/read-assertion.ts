import { childrenOf, isElement, textOf, type XmlElement } from '../xml/xml-document.ts'
import { refuse, type SamlRefused } from './saml-refusal.ts'

/** Expected values of a response. */
export interface Expected {
  /** Entity id of the identity provider. */
  issuer: string
  /** Entity id of the service for the connection. */
  audience: string
  /** URL of the assertion consumer service. */
  recipient: string
  requestId: string
  now: Date
}

/** An assertion that is for us, now, and answers our request. */
export interface CheckedAssertion {
  id: string
  nameId: { value: string; format: string | null }
  endsAt: Date
  statements: readonly XmlElement[]
}

const CLOCK_SKEW_MS = 60_000

/** Longest lifetime of an assertion: its id is kept until then. */
const LIFETIME_LIMIT_MS = 86_400_000

const BEARER = 'urn:oasis:names:tc:SAML:2.0:cm:bearer'
const TRANSIENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient'

/** Longest identifier, in characters (SAML 2.0 core, 8.3.7). */
const NAME_LIMIT = 256

/** Conditions that permit the use for a sign-in (SAML 2.0 core, 2.5). */
const KNOWN_CONDITIONS = ['AudienceRestriction', 'OneTimeUse', 'ProxyRestriction']

/** Checks a verified assertion (SAML 2.0 profiles, 4.1.4.3; docs/contract/saml.md#checks). Pure. */
export function checkAssertion(assertion: XmlElement, expected: Expected): CheckedAssertion | SamlRefused {
  if (!isElement(assertion, 'assertion', 'Assertion')) return refuse('assertion_missing', assertion.name)
  const issuer = childrenOf(assertion, 'assertion', 'Issuer').map(textOf)
  if (issuer.length !== 1 || issuer[0] !== expected.issuer) return refuse('issuer_unknown', issuer[0] ?? '')
  const issuedAt = readInstant(assertion.attributes.get('IssueInstant'))
  if (!issuedAt || isFuture(issuedAt, expected.now)) return refuse('not_yet_valid', 'IssueInstant')
  const conditions = checkConditions(assertion, expected)
  if (conditions) return conditions
  const subject = readSubject(assertion)
  if ('refusal' in subject) return subject
  const confirmed = checkConfirmations(subject.element, expected)
  if ('refusal' in confirmed) return confirmed
  const session = checkAuthentication(assertion, expected)
  if (session) return session
  return {
    id: assertion.attributes.get('ID') ?? '',
    nameId: subject.nameId,
    endsAt: confirmed.endsAt,
    statements: childrenOf(assertion, 'assertion', 'AttributeStatement'),
  }
}

function checkConditions(assertion: XmlElement, { audience, now }: Expected): SamlRefused | undefined {
  const [conditions, second] = childrenOf(assertion, 'assertion', 'Conditions')
  if (!conditions || second) return refuse('other_audience', '')
  const unknown = conditions.children.find(
    (child) => !KNOWN_CONDITIONS.some((name) => isElement(child, 'assertion', name)),
  )
  if (unknown) return refuse('unexpected_element', unknown.name)
  const time = checkPeriod(conditions, now)
  if (time) return time
  const restrictions = childrenOf(conditions, 'assertion', 'AudienceRestriction')
  const audiences = restrictions.map((restriction) => childrenOf(restriction, 'assertion', 'Audience').map(textOf))
  if (restrictions.length === 0 || !audiences.every((listed) => listed.includes(audience)))
    return refuse('other_audience', audiences.flat().join(' '))
  return undefined
}

function readSubject(assertion: XmlElement): { element: XmlElement; nameId: CheckedAssertion['nameId'] } | SamlRefused {
  const [element, second] = childrenOf(assertion, 'assertion', 'Subject')
  if (!element || second) return refuse('subject_missing')
  const [nameId, other] = childrenOf(element, 'assertion', 'NameID')
  const value = nameId && textOf(nameId)
  const isName = value !== undefined && value !== '' && value.length <= NAME_LIMIT && !hasControls(value)
  if (!isName || other) return refuse('subject_missing')
  const format = nameId?.attributes.get('Format') ?? null
  if (format === TRANSIENT) return refuse('subject_transient')
  return { element, nameId: { value, format } }
}

/** One confirmation as bearer must hold; the refusal is that of the last one. */
function checkConfirmations(subject: XmlElement, expected: Expected): { endsAt: Date } | SamlRefused {
  let refused = refuse('confirmation_missing')
  for (const confirmation of childrenOf(subject, 'assertion', 'SubjectConfirmation')) {
    if (confirmation.attributes.get('Method') !== BEARER) continue
    const [data, second] = childrenOf(confirmation, 'assertion', 'SubjectConfirmationData')
    if (!data || second) continue
    const checked = checkConfirmation(data, expected)
    if ('endsAt' in checked) return checked
    refused = checked
  }
  return refused
}

function checkConfirmation(data: XmlElement, expected: Expected): { endsAt: Date } | SamlRefused {
  const [recipient, request] = [data.attributes.get('Recipient'), data.attributes.get('InResponseTo')]
  if (recipient !== expected.recipient) return refuse('other_recipient', recipient ?? '')
  if (request !== expected.requestId) return refuse(request === undefined ? 'unsolicited' : 'other_request')
  const period = checkPeriod(data, expected.now)
  if (period) return period
  const end = readInstant(data.attributes.get('NotOnOrAfter'))
  if (!end) return refuse('expired', 'NotOnOrAfter')
  const endsAt = new Date(end.getTime() + CLOCK_SKEW_MS)
  if (endsAt.getTime() > expected.now.getTime() + LIFETIME_LIMIT_MS) return refuse('lifetime_too_long')
  return { endsAt }
}

function checkAuthentication(assertion: XmlElement, { now }: Expected): SamlRefused | undefined {
  const [statement] = childrenOf(assertion, 'assertion', 'AuthnStatement')
  if (!statement) return refuse('confirmation_missing', 'AuthnStatement')
  const text = statement.attributes.get('SessionNotOnOrAfter')
  const endsAt = readInstant(text)
  const isOver = text !== undefined && (!endsAt || isPast(endsAt, now))
  return isOver ? refuse('expired', 'SessionNotOnOrAfter') : undefined
}

function checkPeriod({ attributes }: XmlElement, now: Date): SamlRefused | undefined {
  const [from, until] = [attributes.get('NotBefore'), attributes.get('NotOnOrAfter')]
  const [start, end] = [readInstant(from), readInstant(until)]
  if (from !== undefined && (!start || isFuture(start, now))) return refuse('not_yet_valid', from)
  if (until !== undefined && (!end || isPast(end, now))) return refuse('expired', until)
  return undefined
}

const isFuture = (at: Date, now: Date) => at.getTime() > now.getTime() + CLOCK_SKEW_MS
const isPast = (at: Date, now: Date) => at.getTime() + CLOCK_SKEW_MS <= now.getTime()

/** Instants are in UTC (SAML 2.0 core, 1.3.3). */
const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|\+00:00)$/

function readInstant(text: string | undefined): Date | undefined {
  if (text === undefined || !INSTANT.test(text)) return undefined
  const at = new Date(text)
  return Number.isNaN(at.getTime()) ? undefined : at
}

/** Control characters, ends of lines, and those that change the direction of a text. */
export function hasControls(text: string): boolean {
  return /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u.test(text)
}
