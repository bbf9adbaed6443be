import { checkNewUrl } from '../../delivery/post/callback-field.ts'
import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import type { Routes } from '../../http/route/route.ts'
import { defineRow } from '../../http/route/row-route.ts'
import { ActiveBody, IdParams } from '../../http/route/schema.ts'
import { CreateTargetBody, TargetRow, TargetWithSecret, UpdateTargetBody } from './target.schema.ts'
import { selectTargets, toTargetRow } from './target.store.ts'
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

const target = defineRow(
  {
    resource: 'provisioning-target',
    path: `${PATH}/{id}`,
    accountScope: 'none',
    rowTag: ['url', 'name', 'description'],
    params: IdParams,
    data: TargetRow,
  },
  { noun: 'Target', load: ({ db, params }) => loadTarget(db, params.id), toRow: toTargetRow },
)

/** Target platforms (docs/contract/provisioning.md#targets). */
export const targetRoutes: Routes<TargetDeps> = [
  target.create(
    {
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
        const { target: row, secret } = await createTarget(deps, db, input)
        const message = secret
          ? 'Target created. Store the secret now; it is not shown again.'
          : 'Target created. Its token is stored and not shown again.'
        return { row, more: { secret }, message }
      },
    },
  ),
  target.list(
    { summary: 'List provisioning targets', list: TARGET_FIELDS },
    { rows: ({ db }) => buildWholeList(selectTargets(db)), message: 'Provisioning targets.' },
  ),
  target.read({ summary: 'Read one provisioning target' }, { message: 'Provisioning target.' }),
  target.update(
    {
      summary: 'Change a provisioning target',
      description:
        'The URL rules apply to the resulting row, also when the update leaves the URL unchanged. A URL of another host needs the `token` of that SCIM service too.',
      body: UpdateTargetBody,
    },
    {
      prepare: (deps: TargetDeps, { db, params, body }) =>
        prepareTargetChange(deps, db, { id: params.id, url: body.url }),
      handle: async (deps, { db, params, body, caller, now }) =>
        changeTarget(deps, db, params.id, { ...body, caller, now }),
    },
  ),
  target.delete(
    {
      summary: 'Delete a provisioning target (soft)',
      description: 'Its ledger is kept; waiting deliveries are cancelled. The target is not notified.',
    },
    async (_deps, { db, params, caller, now }) => ({ row: await deleteTarget(db, params.id, { caller, now }) }),
  ),
  target.change(
    {
      method: 'PATCH',
      path: `${PATH}/{id}/active`,
      action: 'active',
      summary: 'Activate or deactivate a provisioning target',
      description: 'Changes of users are queued for an inactive target too, and are delivered when it is active again.',
      body: ActiveBody,
    },
    async (_deps, { db, params, body, caller, now }) => {
      const isActived = body.is_actived
      const message = isActived ? 'Target activated.' : 'Target deactivated; its queued deliveries wait.'
      return { ...(await setTargetActive(db, params.id, { isActived, caller, now })), message }
    },
  ),
  target.change(
    {
      method: 'POST',
      path: `${PATH}/{id}/rotate-secret`,
      action: 'rotate-secret',
      summary: 'Replace the secret of a provisioning target',
      description: 'The old secret is invalid at once. The new one is in this answer only. 409 for a SCIM service.',
      data: TargetWithSecret,
      shownOnce: 'secret',
    },
    async (deps: TargetDeps, { db, params, caller, now }) => {
      const { target: row, secret } = await rotateTargetSecret(deps, db, params.id, { caller, now })
      const message = 'Secret rotated. Store it now; it is not shown again, and the old one is invalid.'
      return { row, more: { secret }, message }
    },
  ),
]
