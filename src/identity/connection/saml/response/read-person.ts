import { isEmailAddress } from '../../../../http/shape/formats.ts'
import { cleanName } from '../../../engine/embedded/clean-profile.ts'
import { childrenOf, textOf, type XmlElement } from '../xml/xml-document.ts'
import { hasControls } from './read-assertion.ts'
import { refuse, type SamlRefused } from './saml-refusal.ts'

/** Names of the attributes that a connection reads. Null: the usual ones. */
export interface AttributeNames {
  email: string | null
  name: string | null
  groups: string | null
}

/** A person as an identity provider describes it. */
export interface SamlPerson {
  /** Stable identifier of the person at the identity provider. */
  subject: string
  email: string
  name: string | null
  groups: string[]
}

/** The usual names, in the order in which they are looked for: of OASIS, of Microsoft, and plain ones. */
const USUAL: Readonly<Record<keyof AttributeNames, readonly string[]>> = {
  email: [
    'email',
    'mail',
    'emailAddress',
    'urn:oid:0.9.2342.19200300.100.1.3',
    'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress',
  ],
  name: [
    'name',
    'displayName',
    'urn:oid:2.16.840.1.113730.3.1.241',
    'http://schemas.microsoft.com/identity/claims/displayname',
  ],
  groups: ['groups', 'http://schemas.microsoft.com/ws/2008/06/identity/claims/groups'],
}

const EMAIL_FORMAT = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress'

/** Most groups, and the longest value of an attribute in characters. */
const GROUP_LIMIT = 200
const VALUE_LIMIT = 256

/** Reads the person: each attribute once, e-mail and name with one value (docs/contract/saml.md#attributes). Pure. */
export function readPerson(
  { nameId, statements }: { nameId: { value: string; format: string | null }; statements: readonly XmlElement[] },
  names: AttributeNames,
): SamlPerson | SamlRefused {
  const attributes = statements.flatMap((statement) => childrenOf(statement, 'assertion', 'Attribute'))
  const read = (what: keyof AttributeNames) => readValues(attributes, names[what] ?? USUAL[what])
  const [emails, displayed, groups] = [read('email'), read('name'), read('groups')]
  for (const values of [emails, displayed, groups]) if ('refusal' in values) return values
  const [found, shown, listed] = [emails, displayed, groups] as [string[], string[], string[]]
  if (found.length > 1 || shown.length > 1) return refuse('attribute_repeated', found.length > 1 ? 'email' : 'name')
  if (listed.length > GROUP_LIMIT) return refuse('attribute_invalid', `more than ${GROUP_LIMIT} groups`)
  const email = found[0] ?? (names.email === null && nameId.format === EMAIL_FORMAT ? nameId.value : undefined)
  if (email === undefined) return refuse('email_missing')
  // The domain of what is no address is not the one that mail goes to.
  if (!isEmailAddress(email)) return refuse('attribute_invalid', 'email')
  return { subject: nameId.value, email, name: cleanName(shown[0]), groups: [...new Set(listed)] }
}

/** The values of the first of these attributes that the assertion has. */
function readValues(attributes: readonly XmlElement[], names: string | readonly string[]): string[] | SamlRefused {
  for (const name of typeof names === 'string' ? [names] : names) {
    const found = attributes.filter((attribute) => attribute.attributes.get('Name') === name)
    const [attribute] = found
    if (!attribute) continue
    if (found.length > 1) return refuse('attribute_repeated', name)
    const values = childrenOf(attribute, 'assertion', 'AttributeValue').map(textOf)
    const isText = (value: string | undefined) =>
      value !== undefined && value.length <= VALUE_LIMIT && !hasControls(value)
    if (!values.every(isText)) return refuse('attribute_invalid', name)
    return values.filter((value) => value !== undefined && value !== '') as string[]
  }
  return []
}
