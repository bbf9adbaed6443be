import { timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { systemClock } from '../clock.ts'
import type { Random } from '../random.ts'
import { buildGate } from './gate.ts'
import { buildHashThread } from './hash-thread.ts'

/** Shortest and longest password, in code points. No rule about kinds of characters (NIST SP 800-63B section 3.1.1.2). */
export const PASSWORD_LENGTH_MIN = 8
export const PASSWORD_LENGTH_LIMIT = 256

/** Argon2id as OWASP's Password Storage Cheat Sheet asks: 19 MiB, 2 passes, 1 lane. About 40 ms on one core. */
const PARAMETERS = { memory: 19_456, passes: 2, parallelism: 1 }
const TAG_BYTES = 32
const SALT_BYTES = 16

const PHC_PATTERN =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/

/** Wait after which a hash is refused. */
const HASH_WAIT_MS = 5_000

/** Hashes at once: one for each core but one, which other requests have. Each takes 19 MiB. */
const HASHES_AT_ONCE = Math.max(1, availableParallelism() - 1)

/** Hashes that may wait for each that runs: some 0.8 s. */
const QUEUE_FACTOR = 20

/** The wait is in real time. */
const hashingGate = buildGate({
  atOnce: HASHES_AT_ONCE,
  queueLimit: HASHES_AT_ONCE * QUEUE_FACTOR,
  waitMs: HASH_WAIT_MS,
  clock: systemClock,
})

/** Threads without work. The gate admits no more work than there are threads. */
const restingThreads = Array.from({ length: HASHES_AT_ONCE }, buildHashThread)

/** The place of a request that will have one password hashed (`Gate`). Throws 503 `overloaded`. */
export const takeHashingPlace = hashingGate.takePlace

interface PasswordHash {
  memory: number
  passes: number
  parallelism: number
  salt: Buffer
  tag: Buffer
}

function derive(password: string, hash: Omit<PasswordHash, 'tag'> & { tagLength: number }): Promise<Buffer> {
  const parameters = {
    // Normalized, because keyboards compose characters differently (NIST SP 800-63B section 3.1.1.2).
    message: Buffer.from(password.normalize('NFKC')),
    nonce: hash.salt,
    memory: hash.memory,
    passes: hash.passes,
    parallelism: hash.parallelism,
    tagLength: hash.tagLength,
  }
  return hashingGate(async () => {
    const thread = restingThreads.pop() ?? buildHashThread()
    try {
      return await thread(parameters)
    } finally {
      restingThreads.push(thread)
    }
  })
}

function encodePhc({ memory, passes, parallelism, salt, tag }: PasswordHash): string {
  const encode = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${encode(salt)}$${encode(tag)}`
}

function parsePhc(text: string): PasswordHash | undefined {
  const match = PHC_PATTERN.exec(text)
  if (!match) return undefined
  const [memory = 0, passes = 0, parallelism = 0] = match.slice(1, 4).map(Number)
  // A stored hash sets the cost of a sign-in. The service writes none beyond 256 MiB or ten passes.
  if (memory < 8 * parallelism || memory > 262_144 || passes < 1 || passes > 10 || parallelism < 1) return undefined
  return {
    memory,
    passes,
    parallelism,
    salt: Buffer.from(match[4] ?? '', 'base64'),
    tag: Buffer.from(match[5] ?? '', 'base64'),
  }
}

/** Hashes a password for storage, as a PHC string: `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<tag>`. */
export async function hashPassword(password: string, random: Random): Promise<string> {
  const salt = random.bytes(SALT_BYTES)
  const tag = await derive(password, { ...PARAMETERS, salt, tagLength: TAG_BYTES })
  return encodePhc({ ...PARAMETERS, salt, tag })
}

/** Verified where there is no hash, so that an unknown address costs as much as a wrong password (docs/contract/sessions.md#local-sign-in). */
const NOBODY: PasswordHash = { ...PARAMETERS, salt: Buffer.alloc(SALT_BYTES), tag: Buffer.alloc(TAG_BYTES) }

/**
 * Whether `password` matches `stored`. Without a hash, or with one in an unknown form, does the same work and returns
 * false.
 */
export async function isPasswordCorrect(password: string, stored: string | null): Promise<boolean> {
  const parsed = stored === null ? undefined : parsePhc(stored)
  const expected = parsed ?? NOBODY
  const tag = await derive(password, { ...expected, tagLength: expected.tag.length })
  return timingSafeEqual(tag, expected.tag) && parsed !== undefined
}

/** Whether a hash has older parameters and should be replaced. */
export function isHashStale(stored: string): boolean {
  const hash = parsePhc(stored)
  return (
    hash === undefined ||
    hash.memory !== PARAMETERS.memory ||
    hash.passes !== PARAMETERS.passes ||
    hash.parallelism !== PARAMETERS.parallelism
  )
}
