import { extname } from 'node:path'
import { Piscina } from 'piscina'
import type { ForeignWork } from './foreign-work.ts'

/** Parameters of Argon2id (RFC 9106 section 3.1). `memory` in KiB, `tagLength` in bytes. */
export interface HashWork {
  /** Of work as other systems do it. */
  kind?: undefined
  message: Uint8Array
  nonce: Uint8Array
  memory: number
  passes: number
  parallelism: number
  tagLength: number
}

export type AnyHashWork = HashWork | ForeignWork

/** Computes a tag in a thread. Rejects work that its algorithm refuses, and work whose thread ends or does not start. */
export type HashThreads = (work: AnyHashWork) => Promise<Buffer>

/**
 * Builds up to `count` threads for password hashes that yield the processor to every other thread, so that a burst of sign-ins takes
 * what requests leave. A thread starts with the first work that needs it, and one that fails is replaced by the next work.
 * `program` is the URL of what the threads run.
 */
export function buildHashThreads(
  count: number,
  // With the extension of this file: a release is JavaScript.
  program: URL = new URL(`./hash-worker${extname(import.meta.filename)}`, import.meta.url),
): HashThreads {
  const pool: Piscina<AnyHashWork, Uint8Array> = new Piscina({
    filename: program.href,
    minThreads: 0,
    maxThreads: count,
    // A thread costs more to start than to keep.
    idleTimeout: Number.POSITIVE_INFINITY,
    execArgv: [],
    recordTiming: false,
  })
  // A thread that fails at its start has no work, so the waiting work must be rejected.
  pool.on('error', () => void pool.destroy())
  return async (work) => Buffer.from(await pool.run(work))
}
