import { createHash, timingSafeEqual } from 'node:crypto'
import { Problem } from '../../http/problem/problem.ts'
import { listNetworks } from '../../http/request/address-group.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { hashProofToken } from '../user/proof/proof-token.ts'
import {
  type AddressProof,
  admitMailLogin,
  admitSignUp,
  findAddressProof,
  findMailLogin,
  type MailLoginUser,
  type ProofRefusal,
  type SignUpAddress,
  takeAddressProof,
  tryMailLogin,
} from './address-proof.store.ts'

export { describeSignUpAddress, endMailLogins } from './address-proof.store.ts'

/** Limit of open proofs of one address, against flooding a mailbox. */
export const ADDRESS_LIMIT = 3

/** Limits of open proofs of a network (an address or /64), and of the wide network around it (a /24 or /48). */
export const NETWORK_LIMIT = 20
const WIDE_NETWORK_LIMIT = 100

/** Limit of all open proofs of one purpose. */
const TOTAL_LIMIT = 10_000

/** Longest goal that a proof keeps, in characters. */
const GOAL_LIMIT = 2_048

/** The browser that asks for a proof, and where it continues. */
export interface ProofBrowser {
  id: string
  /** Whether a user with the address has signed in with it. */
  isKnown: boolean
  redirectUrl: string | undefined
  next: string | undefined
}

/** Origin of a request for a proof: `browser` only for a page. */
export interface ProofOrigin {
  address: string
  browser?: ProofBrowser | undefined
}

/** Target of the browser that asked for a proof; another browser has none. */
export type ProofGoal = Partial<Pick<AddressProof, 'redirectUrl' | 'next'>>

const hashOf = (text: string) => createHash('sha256').update(text).digest()

/** The hash of a browser's id, as the table keeps it. */
const hashBrowser = (id: string): Buffer => hashOf(`browser ${id}`)

/** Whether a request comes from the browser that asked for a proof; of one by the API, from no browser. Pure. */
export function isAskingBrowser({ browser }: AddressProof, browserId: string | undefined): boolean {
  if (browser === null || browserId === undefined) return browser === null && browserId === undefined
  return timingSafeEqual(browser, hashBrowser(browserId))
}

/** The goal of a proof for this browser. Pure. */
export function findProofGoal(proof: AddressProof, browserId: string | undefined): ProofGoal {
  if (browserId === undefined || !isAskingBrowser(proof, browserId)) return {}
  return { redirectUrl: proof.redirectUrl, next: proof.next }
}

/** Parts of its request that a proof keeps, with their limits. A longer goal is not kept. */
function describeOrigin({ address, browser }: ProofOrigin) {
  const networks = listNetworks(address)
  const isKept = (browser?.redirectUrl?.length ?? 0) + (browser?.next?.length ?? 0) <= GOAL_LIMIT
  return {
    network: hashOf(networks[0]),
    wideNetwork: hashOf(networks.at(-1) ?? networks[0]),
    browser: browser ? hashBrowser(browser.id) : null,
    isKnownBrowser: browser?.isKnown ?? false,
    redirectUrl: (isKept && browser?.redirectUrl) || null,
    next: (isKept && browser?.next) || null,
    addressLimit: ADDRESS_LIMIT,
    networkLimit: NETWORK_LIMIT,
    wideNetworkLimit: WIDE_NETWORK_LIMIT,
    totalLimit: TOTAL_LIMIT,
  }
}

/**
 * Throws 429 or 503 for a request beyond the limit of its network or the total limit. The limit of an address is not
 * shown: it would reveal requests of others for this address.
 */
function checkAdmitted(refusal: ProofRefusal): void {
  if (refusal === 'network')
    throw new Problem('rate_limited', 'Too many mails were asked for from your network. Try again in an hour.', {
      headers: { 'retry-after': '3600' },
      reason: 'network_limit',
    })
  if (refusal === 'total')
    throw new Problem('overloaded', 'Too many mails wait for an answer. Try again in a few minutes.', {
      headers: { 'retry-after': '600' },
      reason: 'total_limit',
    })
}

/** A proof that is asked for, with the hash of the token of its link. */
interface AskedProof {
  tokenHash: Buffer
  email: string
  origin: ProofOrigin
  expiresAt: Date
  now: Date
}

/**
 * Keeps a sign-up until its link is used, and reads the facts about its address, in the caller's transaction. `isKept`
 * is false beyond the limits of the address. Throws 429 or 503 beyond the other limits.
 */
export async function keepSignUp(
  db: Database,
  { origin, ...asked }: AskedProof,
): Promise<SignUpAddress & { isKept: boolean }> {
  const row = { ...asked, purpose: 'sign-up' as const, loginHash: null, codeHash: null, ...describeOrigin(origin) }
  const { refusal, hasRoom, ...address } = await admitSignUp(db, row)
  checkAdmitted(refusal)
  return { ...address, isKept: refusal === null && hasRoom }
}

/** As `keepSignUp`, for a sign-in by mail, of which it reads the user. `loginHash` is of the id that its client holds. */
export async function keepMailLogin(
  db: Database,
  { origin, ...asked }: AskedProof & { loginHash: Buffer; codeHash: Buffer },
): Promise<MailLoginUser & { isKept: boolean }> {
  const { refusal, hasRoom, ...user } = await admitMailLogin(db, {
    ...asked,
    purpose: 'sign-in',
    ...describeOrigin(origin),
  })
  checkAdmitted(refusal)
  return { ...user, isKept: refusal === null && hasRoom }
}

/** The open proof of the token of a link. Does not spend it. */
export function findProof(
  db: Database,
  { token, purpose, now }: { token: string; purpose: AddressProof['purpose']; now: Date },
): Promise<AddressProof | undefined> {
  return findAddressProof(db, { tokenHash: hashProofToken(token), purpose, now })
}

/** Spends the sign-up of a link, with every other one of its address. Of two concurrent uses one succeeds. */
export function takeSignUp(
  db: Database,
  { token, now }: { token: string; now: Date },
): Promise<AddressProof | undefined> {
  return takeAddressProof(db, { tokenHash: hashProofToken(token), purpose: 'sign-up', now })
}

/** The open sign-in by mail of the id that its client holds. */
export function findMailLoginOf(
  db: Database,
  { login, now }: { login: string; now: Date },
): Promise<AddressProof | undefined> {
  return findMailLogin(db, { loginHash: hashProofToken(login), now })
}

/** Locks a sign-in by mail behind its user, by its link or by the id of its client, which counts an attempt. */
export function lockMailLogin(
  db: Database,
  by: { kind: 'link'; token: string } | { kind: 'code'; login: string },
  now: Date,
): Promise<AddressProof | undefined> {
  const [tokenHash, loginHash] =
    by.kind === 'link' ? [hashProofToken(by.token), null] : [null, hashProofToken(by.login)]
  return tryMailLogin(db, { tokenHash, loginHash, now })
}
