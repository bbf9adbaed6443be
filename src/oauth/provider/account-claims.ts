import type { Account } from 'oidc-provider'
import type { Database } from '../../postgres/database.ts'
import { type AccountFacts, findActiveAccount } from '../client.store.ts'
import type { TokenSubject } from '../token-hook.ts'

/** The claims that each scope opens (OpenID Connect Core section 5.4). */
export const CLAIMS_OF_SCOPES = {
  openid: ['sub'],
  profile: ['name', 'picture', 'updated_at'],
  email: ['email', 'email_verified'],
}

/** The claims about a person. Pure; the provider leaves out those whose scope was not granted. */
export function buildClaims(account: AccountFacts): Record<string, unknown> & { sub: string } {
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

/** The account of a subject for the provider; undefined for a user who is disabled or deleted, who then gets nothing. */
export async function findProviderAccount(db: Database, subject: string): Promise<ProviderAccount | undefined> {
  const account = await findActiveAccount(db, subject)
  if (!account) return undefined
  const { id: userId, firstAccount: accountId } = account
  return {
    accountId: userId,
    claims: async () => buildClaims(account),
    subject: { userId, isActive: true, accountId },
  }
}
