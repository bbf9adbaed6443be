/** A sample person of the development provider (docs/contract/social-login.md#development-provider). */
export interface SamplePerson {
  /** In the address of the page. */
  id: 'new' | 'returning' | 'unverified' | 'missing' | 'denied' | 'disabled'
  name: string
  /** What choosing this person shows. */
  shows: string
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
    shows: 'Signs in for the first time, and gets a profile. Each time another address.',
    mailbox: 'nora',
    isEmailVerified: true,
  },
  {
    id: 'returning',
    name: 'Rita Returning',
    shows: 'Has signed in before, and is recognized.',
    mailbox: 'rita',
    isEmailVerified: true,
  },
  {
    id: 'unverified',
    name: 'Umar Unverified',
    shows: 'Has not confirmed the e-mail address at the provider, and is refused.',
    mailbox: 'umar',
    isEmailVerified: false,
  },
  {
    id: 'missing',
    name: 'Mia Missing',
    shows: 'Shares no e-mail address, and is refused.',
    mailbox: null,
    isEmailVerified: false,
  },
  {
    id: 'denied',
    name: 'Dan Denied',
    shows: 'Says no at the provider, and is led back.',
    mailbox: 'dan',
    isEmailVerified: true,
  },
  {
    id: 'disabled',
    name: 'Dora Disabled',
    shows: 'Was disabled by an administrator, and is refused.',
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
