import { findOwners } from '../access/own-rows.ts'
import type { Caller } from '../http/caller.ts'
import { notFound } from '../http/problem.ts'
import type { Database } from '../postgres/database.ts'
import { endEngineGrantWithNext, lockEngineGrant } from './engine-grant.store.ts'
import { endGrantWithNext } from './exchange.store.ts'
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
  const grant = isManaged ? await lockEngineGrant(db, id) : await lockGrant(db, id)
  if (!grant || (owners !== 'all' && grant.userId !== owners)) throw notFound('grant')
  return grant
}

/** Revokes a grant with every code, token and session that rests on it, at once in every process. Throws 404. */
export async function revokeGrant(
  deps: GrantDeps,
  db: Database,
  input: { id: string; caller: Caller; permission: string; now: Date },
) {
  const grant = await loadOwnGrant(deps, db, input)
  if (deps.isManaged) {
    await endEngineGrantWithNext(db, grant, input.now)
    return grant
  }
  await endGrantWithNext(db, grant.id, input.now)
  await revokeGrantRow(db, grant.id, input.now)
  return grant
}
