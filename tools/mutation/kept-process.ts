import { ForksPoolWorker, type PoolOptions, type PoolRunnerInitializer, type PoolWorker } from 'vitest/node'

/** A process of tests that outlives a run: Vitest ends its own after each, and a new one loads every module anew. */
export interface KeptProcess {
  /** The pool of Vitest whose one worker is this process. */
  pool: PoolRunnerInitializer
  /** Ends the process. The next run starts a new one. */
  end: () => Promise<void>
}

type Listener = (...args: unknown[]) => void

/** Keeps the process of one run for the next, until it dies or is ended. Runs follow each other. */
export function keepProcess(): KeptProcess {
  let waiting: ForksPoolWorker | undefined
  /** Those that have died: Vitest waits for ever for the end of one that a signal has ended before. */
  const ended = new WeakSet<ForksPoolWorker>()

  function createPoolWorker(options: PoolOptions): PoolWorker {
    const kept = takeWaiting()
    const isReused = kept !== undefined
    const forks = kept ?? new ForksPoolWorker(options)
    const listeners: [event: string, listener: Listener][] = []
    const answer = (type: 'started' | 'stopped') =>
      queueMicrotask(() => {
        for (const [event, listener] of listeners)
          if (event === 'message') listener({ type, __vitest_worker_response__: true })
      })
    return {
      name: 'kept-forks',
      cacheFs: true,
      start: async () => {
        if (isReused) return
        await forks.start()
        forks.on('exit', () => ended.add(forks))
      },
      on: (event, listener) => {
        listeners.push([event, listener])
        forks.on(event, listener)
        // It may have died since it was taken, and says so once.
        if (event === 'exit' && ended.has(forks)) queueMicrotask(() => listener(null, 'SIGKILL'))
      },
      off: (event, listener) => forks.off(event, listener),
      send: (message) => {
        if (message.type === 'start' && isReused) answer('started')
        else if (message.type === 'stop') answer('stopped')
        else forks.send(message)
      },
      // Vitest does not stop a process that died.
      stop: async () => {
        for (const [event, listener] of listeners) forks.off(event, listener)
        waiting = forks
      },
      deserialize: (data) => data,
    }
  }

  /** The process that waits, if it lives. */
  function takeWaiting(): ForksPoolWorker | undefined {
    const taken = waiting
    waiting = undefined
    return taken && ended.has(taken) ? undefined : taken
  }

  return {
    pool: { name: 'kept-forks', createPoolWorker },
    end: async () => {
      await takeWaiting()?.stop()
    },
  }
}
