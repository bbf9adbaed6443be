import { argon2Sync } from 'node:crypto'
import type { HashWork } from './hash-thread.ts'
import { yieldProcessor } from './yield-processor.ts'

yieldProcessor()

/** Task of a thread of `buildHashThreads`. */
export default function hash(work: HashWork): Uint8Array {
  return argon2Sync('argon2id', work)
}
