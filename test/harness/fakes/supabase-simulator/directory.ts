import { randomUUID } from 'node:crypto'

/** A user at the providers behind the simulator. */
export interface SimulatedUser {
  sub: string
  email?: string | null
  isEmailVerified?: boolean
  name?: string
  denies?: boolean
  /** Whether Microsoft leaves the claim `xms_edov` out; otherwise it is `isEmailVerified`. */
  hasNoEdov?: boolean
}

/** An identity of a user, as the server shows it. */
export interface SimulatedIdentity {
  identity_id: string
  id: string
  user_id: string
  provider: string
  identity_data: Record<string, unknown>
  last_sign_in_at: string
  created_at: string
  updated_at: string
  email?: string
}

/** A user of the server. */
export interface User {
  id: string
  email: string
  identities: SimulatedIdentity[]
  isConfirmed: boolean
  isBanned: boolean
  metadata: Record<string, unknown>
}

/** Settings of the server that decide on users. */
export interface DirectoryRules {
  /** `MAILER_AUTOCONFIRM`: unverified addresses count as verified for linking and for sign-in. */
  autoConfirms: boolean
  /** `EXTERNAL_<PROVIDER>_EMAIL_OPTIONAL`. */
  takesMissingAddress: boolean
  /** `DISABLE_SIGNUP`. */
  takesNobodyNew: boolean
}

/** A sign-in at the server, or its error. */
export type DirectoryResult = { user: User } | { status: number; code: string; message: string }

/** The users of the simulator. */
export interface Directory {
  find(id: string): User | undefined
  /** Effect of the callback of a provider: it finds, links or makes the user. */
  signIn(provider: string, user: SimulatedUser): DirectoryResult
}

interface Profile {
  data: Record<string, unknown>
  address: string | undefined
  isVerified: boolean
}

/** The profile that the server makes of what a provider says, in the members and with the oddities of its sources. */
function readProfile(provider: string, user: SimulatedUser): Profile {
  const { sub, email, isEmailVerified = false, name, hasNoEdov = false } = user
  const address = email?.toLowerCase()
  const isAzure = provider === 'azure'
  const isVerified = address !== undefined && (isAzure && hasNoEdov ? true : isEmailVerified)
  const names: Record<string, object> = {
    discord: { name: 'ada#0', full_name: 'ada', custom_claims: { global_name: name } },
    linkedin_oidc: { name },
    azure: { full_name: name, custom_claims: hasNoEdov ? {} : { xms_edov: isEmailVerified } },
  }
  const data = {
    custom_claims: {},
    iss: `https://${provider.replace(':', '-')}.example.test`,
    sub,
    provider_id: sub,
    ...(names[provider] ?? { name, full_name: name }),
    ...(address !== undefined && { email: address }),
    email_verified: isVerified,
    phone_verified: false,
  }
  return { data, address, isVerified }
}

/** Builds the users. `iso` is the present time. */
export function buildDirectory(rules: () => DirectoryRules, iso: () => string): Directory {
  const users = new Map<string, User>()

  const create = (email: string): User => {
    const id = randomUUID()
    const user = { id, email, identities: [], isConfirmed: false, isBanned: false, metadata: {} }
    users.set(user.id, user)
    return user
  }

  const isTaken = (address: string | undefined) => [...users.values()].some(({ email }) => email === address)

  /** Links by an address that counts as verified, also to one that only an unverified identity has. */
  function choose({ address, isVerified }: Profile): User {
    if (!isVerified && !rules().autoConfirms) return create(isTaken(address) ? '' : (address ?? ''))
    const similar = [...users.values()].find(
      ({ email, identities }) => email === address || identities.some((identity) => identity.email === address),
    )
    return (address !== undefined && similar) || create(address ?? '')
  }

  function addIdentity(user: User, provider: string, { data, address }: Profile): SimulatedIdentity {
    const times = { last_sign_in_at: iso(), created_at: iso(), updated_at: iso() }
    const identity = { identity_id: randomUUID(), id: String(data.sub), user_id: user.id, provider, ...times }
    user.identities.push({ ...identity, identity_data: data, ...(address !== undefined && { email: address }) })
    return user.identities.at(-1)!
  }

  function findKnown(provider: string, sub: string): { user: User; identity: SimulatedIdentity } | undefined {
    for (const user of users.values()) {
      const identity = user.identities.find((identity) => identity.provider === provider && identity.id === sub)
      if (identity) return { user, identity }
    }
    return undefined
  }

  return {
    find: (id) => users.get(id),
    signIn: (provider, signedIn) => {
      const profile = readProfile(provider, signedIn)
      const { data, address, isVerified } = profile
      const { autoConfirms, takesMissingAddress, takesNobodyNew } = rules()
      if (address === undefined && !takesMissingAddress)
        return {
          status: 500,
          code: 'unexpected_failure',
          message: 'Error getting user email from external provider',
        }
      const known = findKnown(provider, signedIn.sub)
      if (!known && takesNobodyNew && !(address !== undefined && isVerified && isTaken(address)))
        return { status: 422, code: 'signup_disabled', message: 'Signups not allowed for this instance' }
      const user = known?.user ?? choose(profile)
      const identity = known?.identity ?? addIdentity(user, provider, profile)
      // `last_sign_in_at` stays as it was at the first sign-in; the library behind the server touches `updated_at`.
      if (known) Object.assign(identity, { identity_data: data, updated_at: iso() })
      user.metadata = { ...user.metadata, ...data }
      if (user.isBanned) return { status: 403, code: 'user_banned', message: 'User is banned' }
      if (address === undefined || user.isConfirmed) return { user }
      user.identities = [identity]
      if (!isVerified && !autoConfirms)
        return {
          status: 422,
          code: 'provider_email_needs_verification',
          message: `Unverified email with ${provider}. A confirmation email has been sent to your ${provider} email`,
        }
      user.isConfirmed = true
      return { user }
    },
  }
}
