import { Worker } from 'node:worker_threads'

/** What Argon2id takes (RFC 9106 section 3.1). `memory` in KiB, `tagLength` in bytes. */
export interface HashWork {
  message: Uint8Array
  nonce: Uint8Array
  memory: number
  passes: number
  parallelism: number
  tagLength: number
}

/** The answer to one piece of work: the tag, or why there is none. */
export type HashAnswer = { tag: Uint8Array } | { failure: string }

/** Runs one piece of work at a time; the caller waits for an answer before it gives the next. */
export type HashThread = (work: HashWork) => Promise<Buffer>

/**
 * Builds a thread for Argon2id that yields the processor to every other thread, so that a burst of sign-ins takes what
 * requests leave. It starts with the first work. A thread that fails rejects its work, and the next work starts a new one.
 */
export function buildHashThread(): HashThread {
  let worker: Worker | undefined

  function start(): Worker {
    const started = new Worker(new URL('./hash-worker.ts', import.meta.url), { execArgv: [], name: 'password hash' })
    // An event without a listener would end the process. The work in progress has listeners of its own.
    started.on('error', () => {})
    started.on('exit', () => {
      if (worker === started) worker = undefined
    })
    return started
  }

  return async (work) => {
    worker ??= start()
    worker.ref()
    try {
      return await answerOf(worker, work)
    } finally {
      // A thread without work does not keep the process running.
      worker?.unref()
    }
  }
}

async function answerOf(worker: Worker, work: HashWork): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const onMessage = (answer: HashAnswer) =>
    'tag' in answer ? resolve(Buffer.from(answer.tag)) : reject(new Error(answer.failure))
  const onExit = () => reject(new Error('The thread that hashes passwords ended.'))
  worker.once('message', onMessage)
  worker.once('error', reject)
  worker.once('exit', onExit)
  worker.postMessage(work)
  try {
    return await promise
  } finally {
    worker.off('message', onMessage)
    worker.off('error', reject)
    worker.off('exit', onExit)
  }
}
