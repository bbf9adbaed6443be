/** A sample user (docs/contract/social-login.md#development-provider), described by the text `sample.<id>`. */
export interface SampleUser {
  /** In the address of the page. */
  id: 'new' | 'returning' | 'unverified' | 'missing' | 'denied' | 'disabled'
  name: string
  /** The part of the address before the `@`; null for a user without one. */
  mailbox: string | null
  isEmailVerified: boolean
}

/** The domain of sample addresses. No mail is ever sent there (RFC 6761). */
const SAMPLE_DOMAIN = 'people.signalbox.localhost'

/** The sample users, in the order of the page. */
export const SAMPLE_PEOPLE: readonly SampleUser[] = [
  { id: 'new', name: 'Nora New', mailbox: 'nora', isEmailVerified: true },
  { id: 'returning', name: 'Rita Returning', mailbox: 'rita', isEmailVerified: true },
  { id: 'unverified', name: 'Umar Unverified', mailbox: 'umar', isEmailVerified: false },
  { id: 'missing', name: 'Mia Missing', mailbox: null, isEmailVerified: false },
  { id: 'denied', name: 'Dan Denied', mailbox: 'dan', isEmailVerified: true },
  { id: 'disabled', name: 'Dora Disabled', mailbox: 'dora', isEmailVerified: true },
]

/** The standard claims of a sample user. `mark` tells one new user from another. Pure. */
export function buildSampleClaims(user: SampleUser, mark: string) {
  const suffix = user.id === 'new' ? `-${mark}` : ''
  const email = user.mailbox && `${user.mailbox}${suffix}@${SAMPLE_DOMAIN}`
  return {
    sub: `sample-${user.id}${suffix}`,
    name: user.name,
    ...(email && { email, email_verified: user.isEmailVerified }),
  }
}
