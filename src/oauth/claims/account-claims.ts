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
function buildClaims(account: UserClaims): Record<string, unknown> & { sub: string } {
  return {
    sub: account.id,
    email: account.email,
    email_verified: account.isEmailVerified,
    updated_at: Math.floor(account.updatedAt.getTime() / 1000),
    ...(account.name !== null && { name: account.name }),
    ...(account.avatarUrl !== null && { picture: account.avatarUrl }),
  }
}

/** The account of a subject, with what decides about its tokens. */
export interface ProviderAccount extends Account {
  subject: TokenSubject
}

/**
 * The claims of a user for the provider. An ID token has only the subject: e-mail and name are in userinfo, which every
 * access token opens, unless the client requests them by the parameter `claims` (OpenID Connect Core section 5.4).
 */
export function toProviderAccount(account: UserClaims): ProviderAccount {
  const { id: userId, firstAccount: accountId } = account
  return {
    accountId: userId,
    claims: async (use, _scope, asked) => {
      const all = buildClaims(account)
      if (use !== 'id_token') return all
      const named = Object.entries(all).filter(([name]) => Object.hasOwn(asked, name))
      return { ...Object.fromEntries(named), sub: all.sub }
    },
    subject: { userId, isActive: true, accountId },
  }
}
