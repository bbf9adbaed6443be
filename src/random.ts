import { randomBytes } from 'node:crypto'

/** Where randomness comes from. Secrets, tokens and ids take their bytes here, so that a seed can replay a run. */
export interface Random {
  /** `length` random bytes. The system source is cryptographically strong. */
  bytes(length: number): Buffer
}

/** The random source of the operating system. */
export const systemRandom: Random = { bytes: (length) => randomBytes(length) }
