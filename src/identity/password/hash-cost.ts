/** Cost of one password hash: Argon2id with one lane (docs/contract/configuration.md#cost-of-password-hashes). */
export interface HashCost {
  /** In KiB. */
  memory: number
  passes: number
}

/** The cost without settings: 25 to 40 ms of one core. */
export const DEFAULT_HASH_COST: HashCost = { memory: 19_456, passes: 2 }

/** The least memory of one lane, in KiB (RFC 9106 section 3.1). */
export const HASH_MEMORY_MIN = 8

/** Maximum cost of a stored hash: 256 MiB and ten passes. */
export const HASH_MEMORY_LIMIT = 262_144
export const HASH_PASSES_LIMIT = 10

/** The equal choices of OWASP's Password Storage Cheat Sheet: KiB for one pass, for two, and so on. */
const SAFE_MEMORY = [47_104, 19_456, 12_288, 9_216, 7_168] as const

/** Minimum safe memory in KiB for this number of passes. More passes than the last choice need as much as it. */
export function findSafeMemory(passes: number): number {
  return SAFE_MEMORY[passes - 1] ?? SAFE_MEMORY[4]
}
