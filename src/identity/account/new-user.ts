import type { AccountId, IdMaker, UserId } from '../../base/id.ts'
import { type EventDraft, recordEvents } from '../../event/occurrence/event.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { registerUser } from '../user/user.ts'
import type { UserWithRoles } from '../user-record/user.store.ts'
import type { AccountRecord } from './account.store.ts'
import { openAccountFor } from './account.ts'

/** Longest name of an account, in characters. */
const ACCOUNT_NAME_LIMIT = 200

/** Dependencies of a registration. */
export interface RegistrationDeps {
  ids: IdMaker
  /** `ENABLE_API_EVENT_QUEUE`. */
  enableApiEventQueue: boolean
}

/**
 * Registers a user who proved its address, in the caller's transaction: with the role `member`, an account of its own, and
 * the events of both (docs/contract/social-login.md#automatic-profile). Throws 409 when the address is taken.
 */
export async function registerWithAccount(
  deps: RegistrationDeps,
  tx: Database,
  input: {
    email: string
    name: string | null
    avatarUrl?: string | null
    passwordHash?: string
    trace: string | null
    now: Date
  },
): Promise<{ user: UserWithRoles; account: AccountRecord }> {
  const { trace, now, ...facts } = input
  const user = await registerUser(deps, tx, { ...facts, emailVerifiedAt: now, now })
  const account = await openAccountFor(deps, tx, { name: nameAccount(facts), userId: user.id, now })
  const drafts: EventDraft[] = [
    { ...draftCreation('user', user.id, trace), accountScope: 'none', account: null },
    { ...draftCreation('account', account.id, trace), accountScope: 'account', account: account.id },
  ]
  await recordEvents(deps, tx, drafts, now)
  return { user, account }
}

/** The user's name, or the part of the address before the `@`. */
function nameAccount({ name, email }: { name: string | null; email: string }): string {
  return (name ?? email.split('@', 1)[0] ?? email).slice(0, ACCOUNT_NAME_LIMIT)
}

/** The event of the route that creates this resource, so that subscribers get every creation. */
function draftCreation(resource: 'user' | 'account', id: UserId | AccountId, trace: string | null) {
  return {
    type: `${resource}.create`,
    resource,
    action: 'create',
    resourceId: id,
    url: `/api/v3/identity/${resource}/${id}`,
    trace,
  }
}
