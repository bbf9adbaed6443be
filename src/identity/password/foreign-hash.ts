import type { ForeignWork } from './foreign-work.ts'
import { HASH_MEMORY_LIMIT } from './hash-cost.ts'

/**
 * Hashes of other systems (docs/contract/sessions.md#imported-passwords). They are stored as `imported` and a PHC
 * string, or bcrypt's own form: a hash of this service never begins so, and has other rules for the text of the
 * password.
 */
const TAG = 'imported'

/** A hash of another system. Only the first block of PBKDF2 is kept: each block alone proves the password. */
export type ForeignHash =
  | {
      kind: 'argon2'
      algorithm: 'argon2id' | 'argon2i' | 'argon2d'
      /** In KiB. */
      memory: number
      passes: number
      parallelism: number
      salt: Buffer
      tag: Buffer
    }
  | { kind: 'pbkdf2'; digest: Pbkdf2Digest; iterations: number; salt: Buffer; tag: Buffer }
  /** `salt` and `tag` are the 22 and 31 characters of bcrypt's own base64. */
  | { kind: 'bcrypt'; cost: number; salt: string; tag: string }

const DIGEST_BYTES = { sha1: 20, sha224: 28, sha256: 32, sha384: 48, sha512: 64 } as const
export type Pbkdf2Digest = keyof typeof DIGEST_BYTES

export const isPbkdf2Digest = (text: string): text is Pbkdf2Digest => Object.hasOwn(DIGEST_BYTES, text)

/** Maximum cost of a stored hash: one to two seconds of a core each. */
const ARGON2_PASSES_LIMIT = 1024
/** Memory in KiB times passes: a quarter more than Logto needs. */
const ARGON2_WORK_LIMIT = 5 * HASH_MEMORY_LIMIT
const PBKDF2_ITERATIONS_LIMIT = 1_500_000
const BCRYPT_COST_LIMIT = 14

/** Minimum cost of a stored hash: below it, guessing is as fast as for a plain digest. */
const ARGON2_WORK_MIN = 4096
const PBKDF2_ITERATIONS_MIN = 1000
const BCRYPT_COST_MIN = 8

const SALT_BYTES_MIN = 8
const BYTES_LIMIT = 64
const TAG_BYTES_MIN = 16

const BASE64 = '([A-Za-z0-9+/]{1,86})'
const ARGON2 = new RegExp(
  `^\\$(argon2id|argon2i|argon2d)\\$v=19\\$m=(\\d{1,10}),t=(\\d{1,10}),p=(\\d{1,3})\\$${BASE64}\\$${BASE64}$`,
)
const PBKDF2 = new RegExp(`^\\$pbkdf2-(sha1|sha224|sha256|sha384|sha512)\\$i=(\\d{1,10})\\$${BASE64}\\$${BASE64}$`)
/** The last character has four bits of the 23 bytes and two that are 0. */
const BCRYPT = /^\$2[aby]\$(\d\d)\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{30}[.CGKOSWaeimquy26])$/

/** Reasons for which a hash is not kept. `unknown`: its form is not supported. */
export type ForeignFault = 'unknown' | 'too_weak' | 'too_costly'

/** Reads a hash of another system by its text; undefined for another form. In linear time. Pure. */
export function parseForeignHash(text: string): ForeignHash | undefined {
  return readArgon2(text) ?? readPbkdf2(text) ?? readBcrypt(text)
}

function readArgon2(text: string): ForeignHash | undefined {
  const match = ARGON2.exec(text)
  if (!match) return undefined
  const [, algorithm = '', memory, passes, parallelism, salt = '', tag = ''] = match
  return {
    kind: 'argon2',
    algorithm: algorithm as 'argon2id',
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  }
}

function readPbkdf2(text: string): ForeignHash | undefined {
  const match = PBKDF2.exec(text)
  if (!match) return undefined
  const [, digest = '', iterations, salt = '', tag = ''] = match
  return {
    kind: 'pbkdf2',
    digest: digest as Pbkdf2Digest,
    iterations: Number(iterations),
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  }
}

function readBcrypt(text: string): ForeignHash | undefined {
  const match = BCRYPT.exec(text)
  if (!match) return undefined
  const [, cost, salt = '', tag = ''] = match
  return { kind: 'bcrypt', cost: Number(cost), salt, tag }
}

/** Reason for which this hash is not kept; undefined when it is. Pure. */
export function findForeignFault(hash: ForeignHash): ForeignFault | undefined {
  if (hash.kind !== 'bcrypt' && !hasUsableBytes(hash)) return 'unknown'
  switch (hash.kind) {
    case 'argon2': {
      const { memory, passes, parallelism } = hash
      if (passes < 1 || parallelism < 1 || memory < 8 * parallelism) return 'unknown'
      const isCostly = memory > HASH_MEMORY_LIMIT || passes > ARGON2_PASSES_LIMIT || memory * passes > ARGON2_WORK_LIMIT
      if (isCostly) return 'too_costly'
      return memory * passes < ARGON2_WORK_MIN ? 'too_weak' : undefined
    }
    case 'pbkdf2':
      if (hash.iterations > PBKDF2_ITERATIONS_LIMIT) return 'too_costly'
      return hash.iterations < PBKDF2_ITERATIONS_MIN ? 'too_weak' : undefined
    case 'bcrypt':
      if (hash.cost > BCRYPT_COST_LIMIT) return 'too_costly'
      return hash.cost < BCRYPT_COST_MIN ? 'too_weak' : undefined
  }
}

function hasUsableBytes({ salt, tag }: { salt: Buffer; tag: Buffer }): boolean {
  const isIn = (bytes: Buffer, least: number) => bytes.length >= least && bytes.length <= BYTES_LIMIT
  return isIn(salt, SALT_BYTES_MIN) && isIn(tag, TAG_BYTES_MIN)
}

/** The text that is stored for a hash without a fault. Pure. */
export function storeForeignHash(hash: ForeignHash): string {
  const encode = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
  switch (hash.kind) {
    case 'argon2': {
      const { algorithm, memory, passes, parallelism, salt, tag } = hash
      return `${TAG}$${algorithm}$v=19$m=${memory},t=${passes},p=${parallelism}$${encode(salt)}$${encode(tag)}`
    }
    case 'pbkdf2': {
      const { digest, iterations, salt, tag } = hash
      const block = tag.subarray(0, DIGEST_BYTES[digest])
      return `${TAG}$pbkdf2-${digest}$i=${iterations}$${encode(salt)}$${encode(block)}`
    }
    case 'bcrypt':
      return `${TAG}$2b$${String(hash.cost).padStart(2, '0')}$${hash.salt}${hash.tag}`
  }
}

/** The hash of a stored text, if another system has made it, within the limits. Pure. */
export function readStoredForeignHash(stored: string): ForeignHash | undefined {
  const hash = stored.startsWith(TAG) ? parseForeignHash(stored.slice(TAG.length)) : undefined
  return hash && findForeignFault(hash) === undefined ? hash : undefined
}

/** The work that computes the tag of a password under this hash, and the tag that it must give. Pure. */
export function planForeignCheck(hash: ForeignHash, password: string): { work: ForeignWork; expected: Buffer } {
  // As typed: other systems do not normalize.
  const message = Buffer.from(password)
  switch (hash.kind) {
    case 'argon2': {
      const { algorithm, memory, passes, parallelism, salt: nonce, tag } = hash
      const work = { kind: 'argon2' as const, algorithm, memory, passes, parallelism, nonce, message }
      return { work: { ...work, tagLength: tag.length }, expected: tag }
    }
    case 'pbkdf2': {
      const { digest, iterations, salt: nonce, tag } = hash
      return {
        work: { kind: 'pbkdf2', digest, iterations, nonce, message, tagLength: tag.length },
        expected: tag,
      }
    }
    case 'bcrypt': {
      const settings = `$2b$${String(hash.cost).padStart(2, '0')}$${hash.salt}`
      return { work: { kind: 'bcrypt', settings, message }, expected: Buffer.from(hash.tag) }
    }
  }
}
