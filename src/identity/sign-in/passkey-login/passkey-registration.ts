import type { PublicKeyCredentialCreationOptionsJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { SessionId, UserId } from '../../../base/id.ts'
import { notFound, Problem } from '../../../http/problem/problem.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { lockUser } from '../../session/session-proof.ts'
import { countAttempt, useChallenge } from '../challenge/factor-challenge.store.ts'
import {
  CHALLENGE_LIFETIME_MS,
  createChallenge,
  findChallengeRefusal,
  hashChallenge,
} from '../challenge/factor-challenge.ts'
import {
  countPasskeys,
  deletePasskey,
  insertPasskey,
  listPasskeys,
  type Passkey,
  renamePasskey,
} from '../passkey/passkey.store.ts'
import { loadWebAuthn, readClientData, readRelyingParty } from '../passkey/passkey.ts'
import { createFirstRecoveryCodes, endLastFactor, type FactorDeps } from '../second-factor/second-factor.ts'

export { findOtherWay, listPasskeys } from '../passkey/passkey.store.ts'

const PASSKEY_LIMIT = 20

interface User {
  userId: UserId
  sessionId: SessionId
  address: string
  now: Date
}

/** Asks the browser for a new passkey (docs/contract/second-factor.md#passkeys). Throws 409 `limit_reached`. */
export async function askForNewPasskey(
  deps: FactorDeps,
  tx: Database,
  { email, name, ...user }: User & { email: string; name: string | null },
): Promise<PublicKeyCredentialCreationOptionsJSON> {
  const own = await listPasskeys(tx, user.userId)
  checkLimit(own.length)
  const challenge = await createChallenge(deps.random, tx, { purpose: 'passkey-registration', ...user })
  const { generateRegistrationOptions } = await loadWebAuthn()
  return generateRegistrationOptions({
    rpName: deps.serviceName,
    rpID: readRelyingParty(deps.keys.issuer()).rpId,
    userName: email,
    userDisplayName: name ?? email,
    // An opaque id, by which an answer to a sign-in identifies the user.
    userID: new Uint8Array(Buffer.from(user.userId)),
    challenge: new Uint8Array(Buffer.from(challenge, 'base64url')),
    timeout: CHALLENGE_LIFETIME_MS,
    attestationType: 'none',
    authenticatorSelection: { residentKey: 'preferred', userVerification: 'preferred' },
    excludeCredentials: own.map(({ credentialId, transports }) => ({ id: credentialId, transports })),
  })
}

function checkLimit(count: number): void {
  if (count < PASSKEY_LIMIT) return
  throw new Problem('limit_reached', `A user has at most ${PASSKEY_LIMIT} passkeys. Remove one first.`)
}

/** A passkey that was registered. `recoveryCodes` is null for a user that has recovery codes. */
export interface RegisteredPasskey {
  passkey: Passkey
  recoveryCodes: string[] | null
}

/** Registers the passkey of an answer. The caller commits a refusal too. Throws 409 `limit_reached`. */
export async function registerPasskey(
  deps: FactorDeps,
  tx: Database,
  input: User & { name: string; credential: RegistrationResponseJSON },
): Promise<RegisteredPasskey | { problem: Problem }> {
  const { userId, sessionId, address, name, credential, now } = input
  const data = readClientData(credential.response.clientDataJSON)
  if (!data || data.isCrossOrigin) return { problem: buildNotRegistered('passkey_malformed') }
  const hash = hashChallenge(data.challenge)
  const expected = { purpose: 'passkey-registration', address, userId, sessionId, now } as const
  // Locks the user before its challenges, in the order of a removal of a factor.
  await lockUser(tx, { userId })
  const refusal = findChallengeRefusal(await countAttempt(tx, { hash }), expected)
  if (refusal) return { problem: buildNotRegistered(refusal) }
  await useChallenge(tx, { hash, now })
  const made = await verify(deps, credential, data.challenge)
  if (!made) return { problem: buildNotRegistered('passkey_not_verified') }
  checkLimit(await countPasskeys(tx, userId))
  const passkey = await insertPasskey(tx, { id: deps.ids.next<'passkey'>(), userId, name, ...made, now })
  if (!passkey) return { problem: buildNotRegistered('passkey_registered_already') }
  return { passkey, recoveryCodes: await createFirstRecoveryCodes(deps, tx, { userId, now }) }
}

type NewPasskey = Pick<
  Passkey,
  'credentialId' | 'publicKey' | 'counter' | 'transports' | 'isBackupEligible' | 'isBackedUp'
>

async function verify(
  deps: FactorDeps,
  credential: RegistrationResponseJSON,
  challenge: string,
): Promise<NewPasskey | undefined> {
  const { rpId, origin } = readRelyingParty(deps.keys.issuer())
  try {
    if (!(await isOwnAttestation(credential))) return undefined
    const { verifyRegistrationResponse } = await loadWebAuthn()
    const { registrationInfo } = await verifyRegistrationResponse({
      response: credential,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      requireUserVerification: false,
    })
    if (!registrationInfo) return undefined
    const { id, publicKey, counter, transports = [] } = registrationInfo.credential
    return {
      credentialId: id,
      publicKey: Buffer.from(publicKey),
      counter,
      transports,
      isBackupEligible: registrationInfo.credentialDeviceType === 'multiDevice',
      isBackedUp: registrationInfo.credentialBackedUp,
    }
  } catch {
    // The library throws for each broken rule of WebAuthn section 7.1.
    return undefined
  }
}

/** Whether the attestation is none, or by the key itself: certificates would load lists from strangers' addresses. */
async function isOwnAttestation({ response }: RegistrationResponseJSON): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  const attestation = decodeAttestationObject(new Uint8Array(Buffer.from(response.attestationObject, 'base64url')))
  const format = attestation.get('fmt')
  return format === 'none' || (format === 'packed' && attestation.get('attStmt').get('x5c') === undefined)
}

function buildNotRegistered(reason: string): Problem {
  const message = 'is not the answer to the options of the last 5 minutes, or is registered already; start again'
  const errors = [{ path: 'credential', code: 'not_accepted' as const, message }]
  return new Problem('validation_failed', `credential: ${message}`, { errors, reason })
}

/** Renames a passkey of a user. Throws 404. */
export async function renameOwnPasskey(
  tx: Database,
  passkey: { id: string; userId: UserId; name: string; now: Date },
): Promise<void> {
  if (!(await renamePasskey(tx, passkey))) throw notFound('passkey')
}

/** Removes a passkey of a user. Throws 404, and 409 for the last sign-in method. */
export async function removePasskey(
  tx: Database,
  { id, userId, now }: { id: string; userId: UserId; now: Date },
): Promise<Passkey> {
  await lockUser(tx, { userId })
  const deleted = await deletePasskey(tx, id, userId)
  if (!deleted) throw notFound('passkey')
  if (!deleted.hasOtherWay)
    throw new Problem('conflict', 'This is your last way to sign in. Set a password or connect a provider first.')
  if (!deleted.hasOtherFactor) await endLastFactor(tx, { userId, now })
  return deleted.removed
}
