import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialRequestOptionsJSON,
  VerifiedAuthenticationResponse,
} from '@simplewebauthn/server'
import type { SessionId, UserId } from '../../../base/id.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { AuthMethod } from '../../session/auth-method.ts'
import type { SessionDeps } from '../../session/session.ts'
import { lockUser } from '../../session/session-proof.ts'
import { type ChallengePurpose, countAttempt, useChallenge } from '../challenge/factor-challenge.store.ts'
import {
  CHALLENGE_LIFETIME_MS,
  type ChallengeRefusal,
  createChallenge,
  findChallengeRefusal,
  hashChallenge,
} from '../challenge/factor-challenge.ts'
import { findPasskey, listPasskeys, type Passkey, recordPasskeyUse } from './passkey.store.ts'

/** Reason of a refused passkey. For the log and the audit log only. */
export type PasskeyRefusal =
  | ChallengeRefusal
  | 'passkey_malformed'
  | 'passkey_unknown'
  | 'passkey_of_other_person'
  | 'passkey_not_verified'
  | 'passkey_counter_regressed'

/** The relying party (WebAuthn section 5.4.2): the host name of BASE_URL, and its origin. */
export function readRelyingParty(baseUrl: string): { rpId: string; origin: string } {
  const { hostname, origin } = new URL(baseUrl)
  return { rpId: hostname, origin }
}

/** Loads the library at its first use: its certificate parsers are a tenth of the modules of a start. */
export function loadWebAuthn() {
  return import('@simplewebauthn/server')
}

/** The members of the client data that are read before the signature is checked. */
interface ClientData {
  challenge: string
  isCrossOrigin: boolean
}

/** Reads the client data of a credential (WebAuthn section 5.8.1). Undefined when they are malformed. */
export function readClientData(clientDataJson: string): ClientData | undefined {
  try {
    const data: unknown = JSON.parse(Buffer.from(clientDataJson, 'base64url').toString('utf8'))
    if (typeof data !== 'object' || data === null || !('challenge' in data)) return undefined
    if (typeof data.challenge !== 'string') return undefined
    return { challenge: data.challenge, isCrossOrigin: 'crossOrigin' in data && data.crossOrigin === true }
  } catch {
    return undefined
  }
}

/** The methods of a proof by a passkey (RFC 8176): one that stays on its device, or one that may be copied. */
export function methodOf({ isBackupEligible }: Pick<Passkey, 'isBackupEligible'>): AuthMethod {
  return isBackupEligible ? 'swk' : 'hwk'
}

/** User and purpose of a challenge for a passkey. */
export interface PasskeyAsk {
  purpose: Extract<ChallengePurpose, 'passkey-sign-in' | 'passkey-factor'>
  /** Null for a sign-in, whose answer names the user. */
  userId: UserId | null
  /** The session of a step-up; null for a sign-in. */
  sessionId: SessionId | null
  address: string
  now: Date
}

/** Requests a proof by an own or any passkey (docs/contract/second-factor.md#passkeys): options for the browser. */
export async function askForPasskey(
  deps: Pick<SessionDeps, 'random' | 'keys'>,
  tx: Database,
  ask: PasskeyAsk,
): Promise<PublicKeyCredentialRequestOptionsJSON> {
  const challenge = await createChallenge(deps.random, tx, ask)
  const own = ask.userId === null ? [] : await listPasskeys(tx, ask.userId)
  const { generateAuthenticationOptions } = await loadWebAuthn()
  return generateAuthenticationOptions({
    rpID: readRelyingParty(deps.keys.issuer()).rpId,
    challenge: Buffer.from(challenge, 'base64url'),
    timeout: CHALLENGE_LIFETIME_MS,
    userVerification: ask.purpose === 'passkey-sign-in' ? 'required' : 'preferred',
    allowCredentials: own.map(({ credentialId, transports }) => ({ id: credentialId, transports })),
  })
}

/** A valid proof by a passkey, or the reason of a refusal. */
export type PasskeyProof = { ok: true; passkey: Passkey } | { ok: false; reason: PasskeyRefusal; userId: UserId | null }

/** Checks an answer to `askForPasskey`, and spends its challenge and signature. The caller commits a refusal too. */
export async function usePasskey(
  deps: Pick<SessionDeps, 'keys'>,
  tx: Database,
  { credential, ...ask }: PasskeyAsk & { credential: AuthenticationResponseJSON },
): Promise<PasskeyProof> {
  const data = readClientData(credential.response.clientDataJSON)
  if (!data || data.isCrossOrigin) return { ok: false, reason: 'passkey_malformed', userId: null }
  const hash = hashChallenge(data.challenge)
  const refusal = findChallengeRefusal(await countAttempt(tx, { hash }), ask)
  if (refusal) return { ok: false, reason: refusal, userId: null }
  // One answer to a challenge, right or wrong.
  await useChallenge(tx, { hash, now: ask.now })
  const passkey = await findPasskey(tx, { credentialId: credential.id })
  if (!passkey) return { ok: false, reason: 'passkey_unknown', userId: null }
  const { userId } = passkey
  if (!isOwner(passkey, ask, credential)) return { ok: false, reason: 'passkey_of_other_person', userId }
  const verified = await verify(deps, { passkey, credential, challenge: data.challenge, ask })
  if (!verified) return { ok: false, reason: explain(passkey, credential), userId }
  const { newCounter: counter, credentialBackedUp: isBackedUp } = verified
  // Locks the user before its passkey, in the order of a removal. A sign-in without a password learns the user only here.
  await lockUser(tx, { userId })
  const isUsed = await recordPasskeyUse(tx, { id: passkey.id, counter, isBackedUp, now: ask.now })
  return isUsed ? { ok: true, passkey } : { ok: false, reason: 'passkey_counter_regressed', userId }
}

/** Whether a passkey and the user handle of the answer belong to the requested user. Pure. */
function isOwner(passkey: Passkey, { userId }: PasskeyAsk, { response }: AuthenticationResponseJSON): boolean {
  const handle = response.userHandle ? Buffer.from(response.userHandle, 'base64url').toString('utf8') : undefined
  // An answer without a requested user must have a user handle (WebAuthn section 7.2, step 6).
  if (userId === null) return handle === passkey.userId
  return userId === passkey.userId && (handle === undefined || handle === userId)
}

async function verify(
  deps: Pick<SessionDeps, 'keys'>,
  input: { passkey: Passkey; credential: AuthenticationResponseJSON; challenge: string; ask: PasskeyAsk },
): Promise<VerifiedAuthenticationResponse['authenticationInfo'] | undefined> {
  const { passkey, credential, challenge, ask } = input
  const { rpId, origin } = readRelyingParty(deps.keys.issuer())
  try {
    const { verifyAuthenticationResponse } = await loadWebAuthn()
    const result = await verifyAuthenticationResponse({
      response: credential,
      expectedChallenge: challenge,
      expectedOrigin: origin,
      expectedRPID: rpId,
      requireUserVerification: ask.purpose === 'passkey-sign-in',
      credential: { id: passkey.credentialId, publicKey: new Uint8Array(passkey.publicKey), counter: passkey.counter },
    })
    return result.verified ? result.authenticationInfo : undefined
  } catch {
    // The library throws for each broken rule of WebAuthn section 7.2.
    return undefined
  }
}

/** The counter follows the hash of the relying party and the flags (WebAuthn section 6.1). */
const COUNTER_OFFSET = 33

function explain(passkey: Passkey, { response }: AuthenticationResponseJSON): PasskeyRefusal {
  const data = Buffer.from(response.authenticatorData, 'base64url')
  const counter = data.length >= COUNTER_OFFSET + 4 ? data.readUInt32BE(COUNTER_OFFSET) : undefined
  const isRegressed = counter !== undefined && passkey.counter > 0 && counter <= passkey.counter
  return isRegressed ? 'passkey_counter_regressed' : 'passkey_not_verified'
}
