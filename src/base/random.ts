import { randomFillSync } from 'node:crypto'

/** The source of randomness for secrets, tokens and ids. A seeded source makes a run repeatable. */
export interface Random {
  /** `length` random bytes. The system source is cryptographically strong. */
  bytes(length: number): Buffer
}

/** Bytes fetched at once. A call to the operating system costs some 2 µs for any length, and each delivery needs several ids. */
const POOL_BYTES = 4096

/** Longer requests bypass the pool. */
const POOLED_BYTES_LIMIT = 64

/** Builds the random source of the operating system. Its pool returns bytes once and wipes them. */
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
