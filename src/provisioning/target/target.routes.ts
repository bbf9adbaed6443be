import { checkNewUrl } from '../../delivery/post/callback-field.ts'
import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList, defineRead } from '../../http/route/row-route.ts'
import { ActiveBody, IdParams } from '../../http/route/schema.ts'
import { CreateTargetBody, TargetRow, TargetWithSecret, UpdateTargetBody } from './target.schema.ts'
import { selectTargets, type TargetRecord, toTargetRow } from './target.store.ts'
import {
  changeTarget,
  checkBase,
  checkToken,
  createTarget,
  deleteTarget,
  loadTarget,
  prepareTargetChange,
  rotateTargetSecret,
  setTargetActive,
  type TargetDeps,
} from './target.ts'

const TARGET_FIELDS = rowFields({
  protocol: { type: 'text', like: 'few-rows' },
  url: { type: 'text', sortable: true, like: 'few-rows' },
  name: { type: 'text', like: 'few-rows' },
  is_actived: { type: 'boolean' },
})

const PATH = '/api/v3/provisioning/target'
/** Columns that a change can set. */
const SETTABLE = ['url', 'name', 'description'] as const

const OF_TARGET = { resource: 'provisioning-target', accountScope: 'none' } as const

const changedOf = (target: TargetRecord) => [{ id: target.id, account: null }]

/** Target platforms (docs/contract/provisioning.md#targets). */
export const targetRoutes: Routes<TargetDeps> = [
  defineRoute(
    {
      ...OF_TARGET,
      method: 'POST',
      path: PATH,
      action: 'create',
      status: 201,
      summary: 'Create a provisioning target',
      description:
        'The secret is in this answer only. From now on the target receives every change of a user; a sync sends it the existing users.',
      body: CreateTargetBody,
      data: TargetWithSecret,
      shownOnce: 'secret',
    },
    {
      prepare: (deps: TargetDeps, { body }) => {
        const { protocol = 'webhook', url, token } = body
        checkToken({ protocol, token })
        checkBase({ protocol, url })
        return checkNewUrl(deps, body.url)
      },
      handle: async (deps, { db, body, caller, now }) => {
        const { url, protocol = 'webhook', name = null, description = null, token } = body
        const input = { url, protocol, name, description, token, caller, now }
        const { target, secret } = await createTarget(deps, db, input)
        return {
          data: { ...toTargetRow(target), secret },
          message: secret
            ? 'Target created. Store the secret now; it is not shown again.'
            : 'Target created. Its token is stored and not shown again.',
          changed: changedOf(target),
          location: `${PATH}/${target.id}`,
        }
      },
    },
  ),
  defineList(
    {
      ...OF_TARGET,
      path: PATH,
      summary: 'List provisioning targets',
      data: TargetRow,
      list: TARGET_FIELDS,
    },
    {
      rows: ({ db }) => buildWholeList(selectTargets(db)),
      toRow: toTargetRow,
      message: 'Provisioning targets.',
    },
  ),
  defineRead(
    {
      ...OF_TARGET,
      path: `${PATH}/{id}`,
      rowTag: SETTABLE,
      summary: 'Read one provisioning target',
      params: IdParams,
      data: TargetRow,
    },
    {
      load: ({ db, params }) => loadTarget(db, params.id),
      toRow: toTargetRow,
      message: 'Provisioning target.',
      changedOf,
    },
  ),
  defineRoute(
    {
      ...OF_TARGET,
      method: 'PATCH',
      path: `${PATH}/{id}`,
      action: 'update',
      rowTag: SETTABLE,
      summary: 'Change a provisioning target',
      description:
        'The URL rules apply to the resulting row, also when the update leaves the URL unchanged. A URL of another host needs the `token` of that SCIM service too.',
      params: IdParams,
      body: UpdateTargetBody,
      data: TargetRow,
    },
    {
      row: { find: (_deps: TargetDeps, { db, params }) => loadTarget(db, params.id), neededBy: 'validation' },
      prepare: (deps, { db, params, body }) => prepareTargetChange(deps, db, { id: params.id, url: body.url }),
      handle: async (deps, { db, params, body, caller, now }) => {
        const { target, before, isChanged } = await changeTarget(deps, db, params.id, { ...body, caller, now })
        return {
          data: toTargetRow(target),
          before: toTargetRow(before),
          message: isChanged ? 'Target updated.' : 'Target unchanged.',
          changed: isChanged ? changedOf(target) : [],
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_TARGET,
      method: 'DELETE',
      path: `${PATH}/{id}`,
      action: 'delete',
      summary: 'Delete a provisioning target (soft)',
      description: 'Its ledger is kept; waiting deliveries are cancelled. The target is not notified.',
      params: IdParams,
      data: TargetRow,
    },
    {
      row: { find: (_deps: TargetDeps, { db, params }) => loadTarget(db, params.id), neededBy: 'validation' },
      handle: async (_deps, { db, params, caller, now }) => {
        const target = await deleteTarget(db, params.id, { caller, now })
        return { data: toTargetRow(target), message: 'Target deleted.', changed: changedOf(target) }
      },
    },
  ),
  defineRoute(
    {
      ...OF_TARGET,
      method: 'PATCH',
      path: `${PATH}/{id}/active`,
      action: 'active',
      summary: 'Activate or deactivate a provisioning target',
      description: 'Changes of users are queued for an inactive target too, and are delivered when it is active again.',
      params: IdParams,
      body: ActiveBody,
      data: TargetRow,
    },
    {
      row: { find: (_deps: TargetDeps, { db, params }) => loadTarget(db, params.id), neededBy: 'validation' },
      handle: async (_deps, { db, params, body, caller, now }) => {
        const isActived = body.is_actived
        const { target, before, isChanged } = await setTargetActive(db, params.id, { isActived, caller, now })
        const message = isActived ? 'Target activated.' : 'Target deactivated; its queued deliveries wait.'
        const changed = isChanged ? changedOf(target) : []
        return { data: toTargetRow(target), before: toTargetRow(before), message, changed }
      },
    },
  ),
  defineRoute(
    {
      ...OF_TARGET,
      method: 'POST',
      path: `${PATH}/{id}/rotate-secret`,
      action: 'rotate-secret',
      summary: 'Replace the secret of a provisioning target',
      description: 'The old secret is invalid at once. The new one is in this answer only. 409 for a SCIM service.',
      params: IdParams,
      data: TargetWithSecret,
      shownOnce: 'secret',
    },
    {
      row: { find: (_deps: TargetDeps, { db, params }) => loadTarget(db, params.id), neededBy: 'validation' },
      handle: async (deps, { db, params, caller, now }) => {
        const { target, secret } = await rotateTargetSecret(deps, db, params.id, { caller, now })
        return {
          data: { ...toTargetRow(target), secret },
          message: 'Secret rotated. Store it now; it is not shown again, and the old one is invalid.',
          changed: changedOf(target),
        }
      },
    },
  ),
]
