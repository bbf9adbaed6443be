import { argon2Sync, pbkdf2Sync } from 'node:crypto'

/** A tag to compute as another system did. */
export type ForeignWork =
  | {
      kind: 'argon2'
      algorithm: 'argon2id' | 'argon2i' | 'argon2d'
      message: Uint8Array
      nonce: Uint8Array
      /** In KiB. */
      memory: number
      passes: number
      parallelism: number
      tagLength: number
    }
  | {
      kind: 'pbkdf2'
      digest: string
      message: Uint8Array
      nonce: Uint8Array
      iterations: number
      tagLength: number
    }
  /** `settings`: `$2b$10$` and the 22 characters of the salt. The tag is in bcrypt's base64. */
  | { kind: 'bcrypt'; message: Uint8Array; settings: string }

/** Length of `settings`. */
const SETTINGS_LENGTH = 29

/** Computes a tag, in a thread of `buildHashThreads`. */
export async function computeForeignTag(work: ForeignWork): Promise<Uint8Array> {
  switch (work.kind) {
    case 'argon2':
      return argon2Sync(work.algorithm, work)
    case 'pbkdf2':
      return pbkdf2Sync(work.message, work.nonce, work.iterations, work.tagLength, work.digest)
    case 'bcrypt': {
      // Loaded at the first hash of this kind, which most services never see.
      const { hashSync } = await import('bcryptjs')
      // bcrypt takes 72 bytes and leaves the rest out, as the other system did.
      return Buffer.from(hashSync(Buffer.from(work.message).toString(), work.settings).slice(SETTINGS_LENGTH))
    }
  }
}
