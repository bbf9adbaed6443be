/**
 * A sample person of the development provider (docs/contract/social-login.md#development-provider). What choosing one shows
 * is the text `sample.<id>`.
 */
export interface SamplePerson {
  /** In the address of the page. */
  id: 'new' | 'returning' | 'unverified' | 'missing' | 'denied' | 'disabled'
  name: string
  /** The part of the address before the `@`; null for a person without one. */
  mailbox: string | null
  isEmailVerified: boolean
}

/** The domain of sample addresses. No mail is ever sent there (RFC 6761). */
const SAMPLE_DOMAIN = 'people.signalbox.localhost'

/** The sample people, in the order of the page. */
export const SAMPLE_PEOPLE: readonly SamplePerson[] = [
  {
    id: 'new',
    name: 'Nora New',
    mailbox: 'nora',
    isEmailVerified: true,
  },
  {
    id: 'returning',
    name: 'Rita Returning',
    mailbox: 'rita',
    isEmailVerified: true,
  },
  {
    id: 'unverified',
    name: 'Umar Unverified',
    mailbox: 'umar',
    isEmailVerified: false,
  },
  {
    id: 'missing',
    name: 'Mia Missing',
    mailbox: null,
    isEmailVerified: false,
  },
  {
    id: 'denied',
    name: 'Dan Denied',
    mailbox: 'dan',
    isEmailVerified: true,
  },
  {
    id: 'disabled',
    name: 'Dora Disabled',
    mailbox: 'dora',
    isEmailVerified: true,
  },
]

/** The standard claims of a sample person. `mark` tells one new person from another. Pure. */
export function buildSampleClaims(person: SamplePerson, mark: string) {
  const suffix = person.id === 'new' ? `-${mark}` : ''
  const email = person.mailbox && `${person.mailbox}${suffix}@${SAMPLE_DOMAIN}`
  return {
    sub: `sample-${person.id}${suffix}`,
    name: person.name,
    ...(email && { email, email_verified: person.isEmailVerified }),
  }
}
