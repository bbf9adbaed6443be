import { timingSafeEqual } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { systemClock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import { type ForeignHash, planForeignCheck, readStoredForeignHash } from './foreign-hash.ts'
import { HASH_MEMORY_LIMIT, HASH_MEMORY_MIN, HASH_PASSES_LIMIT, type HashCost } from './hash-cost.ts'
import { buildHashThreads } from './hash-thread.ts'
import { buildHashingSemaphore, type HashingSemaphore } from './hashing-semaphore.ts'

/** Shortest and longest password, in code points. No rule about kinds of characters (NIST SP 800-63B section 3.1.1.2). */
export const PASSWORD_LENGTH_MIN = 8
export const PASSWORD_LENGTH_LIMIT = 256

/** Lanes of a hash: it has one thread. */
const LANES = 1
const TAG_BYTES = 32
const SALT_BYTES = 16

const PHC_PATTERN =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/

/** Wait after which a hash is refused. */
const HASH_WAIT_MS = 5_000

/** Concurrent hashes, each with the memory of its cost: one for each core but one, which is left to other requests. */
const HASHES_AT_ONCE = Math.max(1, availableParallelism() - 1)

/** Hashes that may wait for each that runs: some 0.8 s at the default cost. */
const QUEUE_FACTOR = 20

/** The wait is in real time. */
const hashingSemaphore = buildHashingSemaphore({
  atOnce: HASHES_AT_ONCE,
  queueLimit: HASHES_AT_ONCE * QUEUE_FACTOR,
  waitMs: HASH_WAIT_MS,
  clock: systemClock,
})

/** The semaphore admits no more work than there are threads. */
const hashInThread = buildHashThreads(HASHES_AT_ONCE)

interface PasswordHash {
  memory: number
  passes: number
  parallelism: number
  salt: Buffer
  tag: Buffer
}

function derive(
  semaphore: HashingSemaphore,
  password: string,
  hash: Omit<PasswordHash, 'tag'> & { tagLength: number },
): Promise<Buffer> {
  const parameters = {
    // Normalized, because keyboards compose characters differently (NIST SP 800-63B section 3.1.1.2).
    message: Buffer.from(password.normalize('NFKC')),
    nonce: hash.salt,
    memory: hash.memory,
    passes: hash.passes,
    parallelism: hash.parallelism,
    tagLength: hash.tagLength,
  }
  return semaphore(() => hashInThread(parameters))
}

async function matchesForeign(semaphore: HashingSemaphore, password: string, hash: ForeignHash): Promise<boolean> {
  const { work, expected } = planForeignCheck(hash, password)
  const tag = await semaphore(() => hashInThread(work))
  return tag.length === expected.length && timingSafeEqual(tag, expected)
}

function encodePhc({ memory, passes, parallelism, salt, tag }: PasswordHash): string {
  const encode = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${encode(salt)}$${encode(tag)}`
}

function parsePhc(text: string): PasswordHash | undefined {
  const match = PHC_PATTERN.exec(text)
  if (!match) return undefined
  const [memory = 0, passes = 0, parallelism = 0] = match.slice(1, 4).map(Number)
  // A stored hash sets the cost of a sign-in, within the limits of the settings.
  const isMemoryValid = memory >= HASH_MEMORY_MIN * parallelism && memory <= HASH_MEMORY_LIMIT
  if (!isMemoryValid || passes < 1 || passes > HASH_PASSES_LIMIT || parallelism < 1) return undefined
  return {
    memory,
    passes,
    parallelism,
    salt: Buffer.from(match[4] ?? '', 'base64'),
    tag: Buffer.from(match[5] ?? '', 'base64'),
  }
}

/** Hashes and verifies passwords at one cost. */
export interface PasswordHashing extends Pick<HashingSemaphore, 'admit' | 'judgePlace'> {
  /** Hashes a password for storage, as a PHC string: `$argon2id$v=19$m=19456,t=2,p=1$<salt>$<tag>`. */
  hash(password: string): Promise<string>
  /**
   * Whether `password` matches `stored`, whatever its cost, also one of another system. Without a hash, or with one in an
   * unknown form, computes one at this cost and returns false, so that an unknown address costs as much as a wrong
   * password (docs/contract/sessions.md#local-sign-in).
   */
  isCorrect(password: string, stored: string | null): Promise<boolean>
  /** Whether a hash has another cost, lower or higher, or is of another system, and should be replaced. */
  isStale(stored: string): boolean
}

/** The dependency of operations that hash or verify passwords. */
export interface PasswordDeps {
  passwords: PasswordHashing
}

/** Builds the hashing of passwords at this cost. The threads are those of the process, and so is the semaphore by default. */
export function buildPasswordHashing(
  { memory, passes }: HashCost,
  random: Random,
  semaphore: HashingSemaphore = hashingSemaphore,
): PasswordHashing {
  const parameters = { memory, passes, parallelism: LANES }
  const nobody: PasswordHash = { ...parameters, salt: Buffer.alloc(SALT_BYTES), tag: Buffer.alloc(TAG_BYTES) }
  return {
    admit: semaphore.admit,
    judgePlace: semaphore.judgePlace,
    hash: async (password) => {
      const salt = random.bytes(SALT_BYTES)
      const tag = await derive(semaphore, password, { ...parameters, salt, tagLength: TAG_BYTES })
      return encodePhc({ ...parameters, salt, tag })
    },
    isCorrect: async (password, stored) => {
      const foreign = stored === null ? undefined : readStoredForeignHash(stored)
      if (foreign) return matchesForeign(semaphore, password, foreign)
      const parsed = stored === null ? undefined : parsePhc(stored)
      const expected = parsed ?? nobody
      const tag = await derive(semaphore, password, { ...expected, tagLength: expected.tag.length })
      return timingSafeEqual(tag, expected.tag) && parsed !== undefined
    },
    isStale: (stored) => {
      const parsed = parsePhc(stored)
      return !parsed || parsed.memory !== memory || parsed.passes !== passes || parsed.parallelism !== LANES
    },
  }
}
