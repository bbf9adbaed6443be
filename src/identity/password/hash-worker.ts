import { argon2Sync } from 'node:crypto'
import type { HashWork } from './hash-thread.ts'
import { yieldProcessor } from './yield-processor.ts'

yieldProcessor()

/** What a thread of `buildHashThreads` does with each work. */
export default function hash(work: HashWork): Uint8Array {
  return argon2Sync('argon2id', work)
}
