import { argon2Sync } from 'node:crypto'
import { constants, setPriority } from 'node:os'
import { parentPort } from 'node:worker_threads'
import type { HashAnswer, HashWork } from './hash-thread.ts'

// On Linux, 0 names the calling thread, not its process. Elsewhere it would lower the whole service.
if (process.platform === 'linux') setPriority(0, constants.priority.PRIORITY_LOW)

function answer(work: HashWork): HashAnswer {
  try {
    return { tag: argon2Sync('argon2id', work) }
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) }
  }
}

parentPort?.on('message', (work: HashWork) => parentPort?.postMessage(answer(work)))
