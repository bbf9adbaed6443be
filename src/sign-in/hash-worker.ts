import { argon2Sync } from 'node:crypto'
import { parentPort } from 'node:worker_threads'
import type { HashAnswer, HashWork } from './hash-thread.ts'
import { yieldProcessor } from './yield-processor.ts'

yieldProcessor()

function answer(work: HashWork): HashAnswer {
  try {
    return { tag: argon2Sync('argon2id', work) }
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) }
  }
}

parentPort?.on('message', (work: HashWork) => parentPort?.postMessage(answer(work)))
