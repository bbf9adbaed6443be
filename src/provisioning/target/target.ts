import type { IdMaker } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { Random } from '../../base/random.ts'
import { type CallbackDeps, checkNewUrl, checkUrl } from '../../delivery/post/callback-field.ts'
import { buildFieldProblem, invalidField, notFound, Problem } from '../../http/problem/problem.ts'
import type { RowChange } from '../../http/route/row-route.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { createSecret } from '../../outbound/signature.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { cancelWaitingOf } from './removal.store.ts'
import {
  changeLockedTarget,
  findTarget,
  insertTarget,
  type TargetChange,
  type TargetProtocol,
  type TargetRecord,
} from './target.store.ts'

/** Maximum number of targets: each gets a delivery within the transaction of every change of a user. */
const TARGETS_LIMIT = 50

/** Dependencies of the operations on targets. */
export interface TargetDeps extends CallbackDeps {
  ids: IdMaker
  random: Random
  keyring: Keyring
}

/** The encryption context of a target's secret: a ciphertext of one row does not decrypt on another. */
export function targetSecretContextOf(id: string): string {
  return `provisioning-target:${id}`
}

/** The existing target with this id, or a 404. A change locks it, so that changes are serialized. */
export async function loadTarget(db: Database, id: string, options: { lock?: boolean } = {}): Promise<TargetRecord> {
  const target = await findTarget(db, id, options)
  if (!target) throw notFound('target')
  return target
}

/** Resolves the host of a changed URL. Throws 404, and a 422 on `url`. */
export async function prepareTargetChange(
  deps: CallbackDeps,
  db: Database,
  { id, url }: { id: string; url?: string | undefined },
): Promise<void> {
  if (url === undefined) return
  const target = await loadTarget(db, id)
  if (url !== target.url) await checkNewUrl(deps, url)
}

/** Input of a new target. */
export interface CreateTargetInput {
  protocol: TargetProtocol
  url: string
  name: string | null
  description: string | null
  /** The bearer token of a SCIM service. */
  token: string | undefined
  caller: Pick<Caller, 'userId'> | null
  now: Date
}

/** Checks the members of a new target against each other. Throws a 422 on `token`. */
export function checkToken({ protocol, token }: Pick<CreateTargetInput, 'protocol' | 'token'>): void {
  if (protocol === 'scim' && token === undefined)
    throw invalidField('token', 'required', 'is required when protocol is scim; give the bearer token of the service')
  if (protocol === 'webhook' && token !== undefined)
    throw invalidField('token', 'not_allowed', 'is accepted only when protocol is scim')
}

/** Checks that paths can be appended to the base of a SCIM service. Throws a 422 on `url`. */
export function checkBase({ protocol, url }: { protocol: TargetProtocol; url: string }): void {
  if (protocol === 'scim' && /[?#]/.test(url))
    throw invalidField('url', 'url_invalid', 'is the base of a SCIM service, so it has no ? and no #')
}

/**
 * Checks that the token of a SCIM service stays at its service: a URL of another origin needs a token of its own, so that
 * a caller who may change a target cannot have its stored token sent elsewhere. Throws a 422 on `token`.
 */
function checkTokenOfUrl(target: TargetRecord, { url, token }: Pick<ChangeTargetInput, 'url' | 'token'>): void {
  if (target.protocol !== 'scim' || url === undefined || token !== undefined) return
  if (new URL(url).origin !== new URL(target.url).origin)
    throw buildFieldProblem({
      path: 'token',
      code: 'required',
      message: 'is required with a URL of another host: the stored one is not sent there',
      params: {
        other: 'url',
      },
    })
}

/** Creates an active target, whose secret is in this answer only. Throws a 422 on `token`, and 409 `limit_reached`. */
export async function createTarget(
  deps: TargetDeps,
  db: Database,
  input: CreateTargetInput,
): Promise<{ target: TargetRecord; secret: string | null }> {
  const { token, caller, ...settings } = input
  checkToken(input)
  checkBase(input)
  const id = deps.ids.next<'provisioning target'>()
  const secret = token === undefined ? createSecret(deps.random) : null
  const target = await insertTarget(db, {
    ...settings,
    id,
    secretEncrypted: deps.keyring.seal(token ?? secret ?? '', targetSecretContextOf(id)),
    by: caller?.userId ?? null,
    limit: TARGETS_LIMIT,
  })
  if (!target) throw new Problem('limit_reached', `There are ${TARGETS_LIMIT} targets, the most. Delete one first.`)
  return { target, secret }
}

/** Input of a change of a target. */
export interface ChangeTargetInput {
  url?: string
  name?: string | null
  description?: string | null
  token?: string
  caller: Caller
  now: Date
}

/** Changes a target after `prepareTargetChange`. Throws 404, and a 422 on `url` or `token`. */
export async function changeTarget(
  deps: Pick<TargetDeps, 'callbackRules' | 'keyring'>,
  db: Database,
  id: string,
  input: ChangeTargetInput,
): Promise<RowChange<TargetRecord>> {
  const { token, caller, now } = input
  const target = await loadTarget(db, id, { lock: true })
  checkUrl(deps, input.url ?? target.url)
  checkBase({ protocol: target.protocol, url: input.url ?? target.url })
  if (token !== undefined) checkToken({ protocol: target.protocol, token })
  checkTokenOfUrl(target, input)
  const change: TargetChange = {
    ...findChange(target, input),
    ...(token !== undefined && { secretEncrypted: deps.keyring.seal(token, targetSecretContextOf(target.id)) }),
  }
  if (Object.keys(change).length === 0) return { row: target, before: target, isChanged: false }
  const changed = await changeLockedTarget(db, target, change, { by: caller.userId, now })
  return { row: changed, before: target, isChanged: true }
}

/** The columns of an update that differ. */
function findChange(
  { url, name, description }: TargetRecord,
  wanted: Pick<ChangeTargetInput, 'url' | 'name' | 'description'>,
): TargetChange {
  return {
    ...(wanted.url !== undefined && wanted.url !== url && { url: wanted.url }),
    ...(wanted.name !== undefined && wanted.name !== name && { name: wanted.name }),
    ...(wanted.description !== undefined && wanted.description !== description && { description: wanted.description }),
  }
}

/** Activates or deactivates a target; deliveries to an inactive one wait. Throws 404. */
export async function setTargetActive(
  db: Database,
  id: string,
  { isActived, caller, now }: { isActived: boolean; caller: Caller; now: Date },
): Promise<RowChange<TargetRecord>> {
  const target = await loadTarget(db, id, { lock: true })
  if (target.isActived === isActived) return { row: target, before: target, isChanged: false }
  const changed = await changeLockedTarget(db, target, { isActived }, { by: caller.userId, now })
  return { row: changed, before: target, isChanged: true }
}

/** Replaces the secret at once, also for waiting deliveries. Throws 404, and 409 for a target that has a token. */
export async function rotateTargetSecret(
  deps: Pick<TargetDeps, 'random' | 'keyring'>,
  db: Database,
  id: string,
  { caller, now }: { caller: Caller; now: Date },
): Promise<{ target: TargetRecord; secret: string }> {
  const target = await loadTarget(db, id, { lock: true })
  if (target.protocol === 'scim')
    throw new Problem('conflict', 'This target has a token, which its own service makes. Send the new one as `token`.')
  const secret = createSecret(deps.random)
  const secretEncrypted = deps.keyring.seal(secret, targetSecretContextOf(target.id))
  return {
    target: await changeLockedTarget(db, target, { secretEncrypted }, { by: caller.userId, now }),
    secret,
  }
}

/** Soft-deletes a target: its ledger stays, waiting deliveries and an open job are cancelled. Throws 404. */
export async function deleteTarget(
  db: Database,
  id: string,
  { caller, now }: { caller: Caller; now: Date },
): Promise<TargetRecord> {
  const target = await loadTarget(db, id, { lock: true })
  await cancelWaitingOf(db, { target: target.id, now })
  return changeLockedTarget(db, target, { deletedAt: now }, { by: caller.userId, now })
}
