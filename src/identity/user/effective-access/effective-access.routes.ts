import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { IdParams } from '../../../http/route/schema.ts'
import { EffectiveAccessRow, toEffectiveAccessRow } from './effective-access.schema.ts'
import { type EffectiveAccessDeps, loadEffectiveAccess } from './effective-access.ts'

/** Effective permissions of a user, with their reasons (docs/contract/identity.md#effective-permissions). */
export const effectiveAccessRoutes: Routes<EffectiveAccessDeps> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/identity/user/{id}/access',
      resource: 'user',
      action: 'find-access',
      accountScope: 'none',
      summary: 'Read the effective permissions of a user and their sources',
      description: 'Each permission that has an effect, with the roles that hold it and where they hold.',
      params: IdParams,
      data: EffectiveAccessRow,
    },
    async (deps: EffectiveAccessDeps, { db, params }) => ({
      data: toEffectiveAccessRow(await loadEffectiveAccess(deps, db, params.id)),
      message: 'Permissions of the user.',
      changed: [{ id: params.id, account: null }],
    }),
  ),
]
