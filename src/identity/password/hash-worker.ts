import { argon2Sync } from 'node:crypto'
import { computeForeignTag } from './foreign-work.ts'
import type { AnyHashWork } from './hash-thread.ts'
import { yieldProcessor } from './yield-processor.ts'

yieldProcessor()

/** Task of a thread of `buildHashThreads`. */
export default function hash(work: AnyHashWork): Uint8Array | Promise<Uint8Array> {
  return work.kind === undefined ? argon2Sync('argon2id', work) : computeForeignTag(work)
}
