import { createHash, timingSafeEqual } from 'node:crypto'
import { Problem } from '../../http/problem/problem.ts'
import { listNetworks } from '../../http/request/address-group.ts'
import type { AddressProof, NewAddressProof, ProofRefusal } from './address-proof.store.ts'

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

/** Where a request for a proof comes from: `browser` only for a page. */
export interface ProofOrigin {
  address: string
  browser?: ProofBrowser | undefined
}

/** Where the browser that asked for a proof continues; nowhere in another browser. */
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

/** Columns of a new proof that say where its request comes from, and the limits that it is counted against. */
type OriginColumns =
  | 'network'
  | 'wideNetwork'
  | 'browser'
  | 'isKnownBrowser'
  | 'redirectUrl'
  | 'next'
  | 'addressLimit'
  | 'networkLimit'
  | 'wideNetworkLimit'
  | 'totalLimit'

/** What a proof keeps of its request, and its limits. A longer goal is not kept. */
export function describeOrigin({ address, browser }: ProofOrigin): Pick<NewAddressProof, OriginColumns> {
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
 * Throws 429 or 503 for a request beyond the limit of its network or of everybody. The limit of an address is not shown:
 * it would reveal that somebody else asks for this address.
 */
export function checkAdmitted(refusal: ProofRefusal): void {
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
