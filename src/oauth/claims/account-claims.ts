import type { Account } from 'oidc-provider'
import type { TokenSubject } from '../hook/token-hook.ts'
import type { UserClaims } from './user-claims.store.ts'

/** The claims that each scope opens (OpenID Connect Core section 5.4). */
export const CLAIMS_OF_SCOPES = {
  openid: ['sub'],
  profile: ['name', 'picture', 'updated_at'],
  email: ['email', 'email_verified'],
}

/** The claims about a user. Pure; the provider leaves out those whose scope was not granted. */
function buildClaims(user: UserClaims): Record<string, unknown> & { sub: string } {
  return {
    sub: user.id,
    email: user.email,
    email_verified: user.isEmailVerified,
    updated_at: Math.floor(user.updatedAt.getTime() / 1000),
    ...(user.name !== null && { name: user.name }),
    ...(user.avatarUrl !== null && { picture: user.avatarUrl }),
  }
}

/** The `Account` of oidc-provider for a user, with the subject of its tokens. */
export interface ProviderAccount extends Account {
  subject: TokenSubject
}

/**
 * The claims of a user for the provider. An ID token has only the subject: e-mail and name are in userinfo, which every
 * access token opens, unless the client requests them by the parameter `claims` (OpenID Connect Core section 5.4).
 */
export function toProviderAccount(user: UserClaims): ProviderAccount {
  const { id: userId, firstAccount: accountId } = user
  return {
    accountId: userId,
    claims: async (use, _scope, asked) => {
      const all = buildClaims(user)
      if (use !== 'id_token') return all
      const named = Object.entries(all).filter(([name]) => Object.hasOwn(asked, name))
      return { ...Object.fromEntries(named), sub: all.sub }
    },
    subject: { userId, isActive: true, accountId },
  }
}
