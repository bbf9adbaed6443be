import { randomFillSync } from 'node:crypto'

/** Where randomness comes from. Secrets, tokens and ids take their bytes here, so that a seed can replay a run. */
export interface Random {
  /** `length` random bytes. The system source is cryptographically strong. */
  bytes(length: number): Buffer
}

/** Asking the operating system costs some 2 µs whatever the length, and each delivery needs several ids: fetch by the page. */
const POOL_BYTES = 4096

/** Longer requests go to the operating system directly. */
const POOLED_BYTES_LIMIT = 64

/** Builds the random source of the operating system. Bytes of its pool are handed out once and wiped there. */
function buildSystemRandom(): Random {
  const pool = Buffer.alloc(POOL_BYTES)
  let used = POOL_BYTES
  return {
    bytes: (length) => {
      if (length > POOLED_BYTES_LIMIT) return randomFillSync(Buffer.alloc(length))
      if (used + length > POOL_BYTES) {
        randomFillSync(pool)
        used = 0
      }
      const taken = Buffer.from(pool.subarray(used, used + length))
      pool.fill(0, used, used + length)
      used += length
      return taken
    },
  }
}

/** The random source of the operating system. */
export const systemRandom: Random = buildSystemRandom()
