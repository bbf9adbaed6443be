import type { UserId } from '../../base/id.ts'
import { notFound } from '../../http/problem/problem.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { findOwners } from '../../identity/access/own-rows.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { endGrantWithNext } from '../exchange/exchange.store.ts'
import { type AppWithAccess, listApps, listEngineApps } from './app.store.ts'
import { endEngineGrantWithNext, lockEngineGrant } from './engine-grant.store.ts'
import { lockGrant, revokeGrantRow } from './grant.store.ts'

/** Dependencies of the operations on grants. */
export interface GrantDeps {
  /** Whether the apps are those of a managed engine. */
  isManaged: boolean
}

/** The grant with this id that the caller reaches: its own, or with the permission any user's. Locked. Throws 404. */
export async function loadOwnGrant(
  { isManaged }: GrantDeps,
  db: Database,
  { id, caller, permission }: { id: string; caller: Caller; permission: string },
) {
  const owners = findOwners(caller, permission)
  const grant = isManaged ? await lockEngineGrant(db, { id }) : await lockGrant(db, { id })
  if (!grant || (owners !== 'all' && grant.userId !== owners)) throw notFound('grant')
  return grant
}

/** Revokes a grant with every code, token and session that rests on it, at once in every process. Throws 404. */
export async function revokeGrant(
  deps: GrantDeps,
  db: Database,
  input: { id: string; caller: Caller; permission: string; now: Date },
) {
  return endGrant(deps, db, await loadOwnGrant(deps, db, input), input.now)
}

type LockedGrant = Awaited<ReturnType<typeof loadOwnGrant>>

async function endGrant({ isManaged }: GrantDeps, db: Database, grant: LockedGrant, now: Date): Promise<LockedGrant> {
  if (isManaged) {
    await endEngineGrantWithNext(db, { ...grant, now })
    return grant
  }
  await endGrantWithNext(db, { grantId: grant.id, now })
  await revokeGrantRow(db, { id: grant.id, now })
  return grant
}

/** As `revokeGrant`, for the page of a user: only its own grants, whatever its permissions. Throws 404. */
export async function revokeUsersGrant(
  deps: GrantDeps,
  db: Database,
  { id, userId, now }: { id: string; userId: UserId; now: Date },
): Promise<LockedGrant> {
  const grant = deps.isManaged ? await lockEngineGrant(db, { id }) : await lockGrant(db, { id })
  if (grant?.userId !== userId) throw notFound('grant')
  return endGrant(deps, db, grant, now)
}

/** The apps with a grant of a user, the most recently used first. */
export function listUsersApps({ isManaged }: GrantDeps, db: Database, userId: UserId): Promise<AppWithAccess[]> {
  return (isManaged ? listEngineApps : listApps)(db, { userId })
}
