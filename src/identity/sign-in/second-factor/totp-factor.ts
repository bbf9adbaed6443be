import type { UserId } from '../../../base/id.ts'
import type { StoredSecrets } from '../../../delivery/post/reencrypt.ts'
import { invalidField, notFound, Problem } from '../../../http/problem/problem.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { lockUser } from '../../session/session-proof.ts'
import { loadUser } from '../../user/user.ts'
import {
  createFirstRecoveryCodes,
  endLastFactor,
  type FactorDeps,
  openTotpSecret,
  takeCodeOf,
  totpContextOf,
} from './second-factor.ts'
import { buildOtpauthUrl, encodeBase32, TOTP_SECRET_BYTES } from './totp.ts'
import {
  deleteTotp,
  enrolTotp,
  findTotp,
  listStaleTotps,
  replaceTotpSecret,
  type TotpFactor,
  type TotpFactorId,
} from './totp-factor.store.ts'

/** A factor that was enrolled, with its secret, which is shown until it is confirmed. */
export interface EnrolledTotp {
  factor: TotpFactor
  /** Base32. */
  secret: string
  /** For a QR code. */
  otpauthUrl: string
}

/** Enrols an authenticator app, in place of an unconfirmed one. Throws 409 beside a confirmed one. */
export async function enrolAuthenticator(
  deps: FactorDeps,
  tx: Database,
  { userId, now }: { userId: UserId; now: Date },
): Promise<EnrolledTotp> {
  const id = deps.ids.next<'totp factor'>()
  const secret = deps.random.bytes(TOTP_SECRET_BYTES)
  const secretEncrypted = deps.keyring.seal(secret.toString('base64url'), totpContextOf(id))
  const enrolled = await enrolTotp(tx, { id, userId, secretEncrypted, now })
  if (!enrolled) throw new Problem('conflict', 'You have an authenticator app already. Remove it first.')
  const otpauthUrl = buildOtpauthUrl(secret, { service: deps.serviceName, user: enrolled.email })
  return { factor: enrolled.factor, secret: encodeBase32(secret), otpauthUrl }
}

/** The app of a user that waits for its first code, with its key; undefined when there is none. */
export async function findEnrolled(deps: FactorDeps, db: Database, userId: UserId): Promise<EnrolledTotp | undefined> {
  const factor = await findTotp(db, { userId })
  const secret = factor?.confirmedAt === null ? openTotpSecret(deps, factor) : undefined
  if (!factor || !secret) return undefined
  const { email } = await loadUser(db, userId)
  const otpauthUrl = buildOtpauthUrl(secret, { service: deps.serviceName, user: email })
  return { factor, secret: encodeBase32(secret), otpauthUrl }
}

/** A factor that was confirmed. `recoveryCodes` is null for a user that has recovery codes. */
export interface ConfirmedTotp {
  id: TotpFactorId
  recoveryCodes: string[] | null
}

/** The 422 for a code that is not accepted, the same for every reason. */
export function buildWrongCode(reason: string): Problem {
  const { detail, errors = [] } = invalidField(
    'code',
    'wrong_code',
    'is not a code that is valid now; wait for the next one',
  )
  return new Problem('validation_failed', detail, { errors, reason })
}

/** Confirms an enrolled app by its first code. Throws 404 when none is enrolled, 409 when it is confirmed already. */
export async function confirmAuthenticator(
  deps: FactorDeps,
  tx: Database,
  { userId, code, now }: { userId: UserId; code: string; now: Date },
): Promise<ConfirmedTotp | { problem: Problem }> {
  await lockUser(tx, { userId })
  const factor = await findTotp(tx, { userId })
  if (!factor) throw notFound('authenticator app')
  if (factor.confirmedAt !== null) throw new Problem('conflict', 'The authenticator app is confirmed already.')
  const reason = await takeCodeOf(deps, tx, { factor, code: code.replace(/\s/g, ''), confirms: true, now })
  if (reason) return { problem: buildWrongCode(reason) }
  return { id: factor.id, recoveryCodes: await createFirstRecoveryCodes(deps, tx, { userId, now }) }
}

/** Removes the authenticator app of a user, confirmed or not. Throws 404 when it has none. */
export async function removeAuthenticator(tx: Database, user: { userId: UserId; now: Date }): Promise<TotpFactorId> {
  await lockUser(tx, user)
  const removed = await deleteTotp(tx, user)
  if (!removed) throw notFound('authenticator app')
  if (!removed.hasPasskey) await endLastFactor(tx, user)
  return removed.id
}

/** The secrets of apps, for a new SECRET_KEY. */
export const TOTP_SECRETS: StoredSecrets = {
  list: listStaleTotps,
  replace: replaceTotpSecret,
  contextOf: totpContextOf,
}
