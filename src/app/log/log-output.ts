import { closeSync, constants, fstatSync, openSync, write, writeSync } from 'node:fs'
import { type Clock, machineClock, readMonotonicMs } from '../../base/clock.ts'

/** Maximum of pending output in bytes: some 3,000 lines. Beyond it lines are dropped and counted. */
export const LOG_BUFFER_BYTES = 1_048_576

const CHUNK_BYTES = 65_536

/** Pause after a failed write, in milliseconds. To a full pipe it doubles while its reader stalls. */
const PIPE_PAUSE_MS = 10
const FAULT_PAUSE_MS = 500

/** Number of tries for the last lines of a process on a full pipe. */
const END_TRIES = 20

/** A buffer for `Atomics.wait`, which pauses an ending process. */
const PAUSE = new Int32Array(new SharedArrayBuffer(4))

/** Wait of an ending process for the reader of its log, in milliseconds. */
const LOG_END_LIMIT_MS = 1_000

/** The output of the log. Writing never waits for the reader. */
export interface LogOutput {
  /** Writes a line. Never throws, never waits. */
  write(line: string): void
  /** Number of lines dropped because the buffer was full. */
  dropped(): number
  /** Waits until all lines are out, for `limitMs` at most. */
  drain(limitMs?: number): Promise<void>
  /** Writes buffered lines synchronously as far as possible; for the end of a process. */
  flushNow(): void
}

export interface LogOutputOptions {
  /** Default: standard error. */
  descriptor?: number
  /** Default: `LOG_BUFFER_BYTES`. */
  limitBytes?: number
  /** Called once there is room after lines were dropped. `lines`: their number since the last call. */
  onRoom?: (lines: number) => void
  rest?: Clock['sleep']
}

interface Target {
  descriptor: number
  /** Whether a write returns at once without space: files, and pipes with a separate opening. */
  isPrompt: boolean
}

/**
 * Opens the output. A file is written to directly. A pipe is reopened non-blocking, without changing that for other
 * processes that share it; where that is impossible, and for sockets, writes run on another thread. A failed write
 * (`ENOSPC`, `EPIPE`, `EAGAIN`) is repeated, and further lines wait in a bounded buffer.
 */
export function openLogOutput(options: LogOutputOptions = {}): LogOutput {
  const { limitBytes = LOG_BUFFER_BYTES, onRoom, rest = machineClock.sleep } = options
  const target = openTarget(options.descriptor ?? 2)
  let waiting: Buffer[] = []
  let waitingBytes = 0
  let dropped = 0
  let reported = 0
  let running: Promise<void> | undefined
  /** Write of the helper thread in progress, and its start. */
  let beside: { bytes: number; sinceMs: number } | undefined

  function take(): Buffer | undefined {
    if (waiting.length === 0) return undefined
    let [bytes, count] = [0, 0]
    for (const line of waiting) {
      if (count > 0 && bytes + line.length > CHUNK_BYTES) break
      bytes += line.length
      count += 1
    }
    return count === 1 ? waiting[0] : Buffer.concat(waiting.slice(0, count), bytes)
  }

  /** Removes written bytes from the head of the queue. */
  function advance(bytes: number): void {
    waitingBytes -= bytes
    let left = bytes
    let whole = 0
    for (const line of waiting) {
      if (line.length > left) break
      left -= line.length
      whole += 1
    }
    waiting = waiting.slice(whole)
    const [head] = waiting
    if (head && left > 0) waiting[0] = head.subarray(left)
  }

  /** Writes the head of the queue once. Returns the pause before the next write, given the pause before this one. */
  async function step(chunk: Buffer, pausedMs: number): Promise<number> {
    try {
      if (!target.isPrompt) beside = { bytes: chunk.length, sinceMs: readMonotonicMs() }
      advance(target.isPrompt ? writeSync(target.descriptor, chunk) : await writeBeside(target.descriptor, chunk))
      return 0
    } catch (error) {
      return isFull(error) ? Math.min(FAULT_PAUSE_MS, Math.max(PIPE_PAUSE_MS, 2 * pausedMs)) : FAULT_PAUSE_MS
    } finally {
      beside = undefined
    }
  }

  async function run(): Promise<void> {
    // Lines of one turn are written at once.
    await new Promise(setImmediate)
    let pauseMs = 0
    for (let chunk = take(); chunk; chunk = take()) {
      pauseMs = await step(chunk, pauseMs)
      if (pauseMs > 0) await rest(pauseMs)
      else report()
    }
    running = undefined
  }

  function report(): void {
    if (dropped === reported || waitingBytes > limitBytes / 2) return
    const lines = dropped - reported
    reported = dropped
    onRoom?.(lines)
  }

  return {
    write: (line) => {
      const bytes = Buffer.from(line)
      if (waitingBytes + bytes.length > limitBytes) {
        dropped += 1
        return
      }
      waiting.push(bytes)
      waitingBytes += bytes.length
      running ??= run()
    },
    dropped: () => dropped,
    drain: async (limitMs = LOG_END_LIMIT_MS) => {
      const limit = new AbortController()
      if (running) await Promise.race([running, rest(limitMs, limit.signal)])
      limit.abort()
    },
    flushNow: () => {
      // A thread blocked for this long waits for a stalled reader.
      if (beside && readMonotonicMs() - beside.sinceMs >= LOG_END_LIMIT_MS / 2) return
      // The thread writes the head of the queue; written here too, it would appear twice.
      if (beside) advance(beside.bytes)
      for (let tries = 0, chunk = take(); chunk && tries < END_TRIES; chunk = take()) {
        try {
          advance(writeSync(target.descriptor, chunk))
        } catch (error) {
          // Lines without room are lost with the process.
          if (!isFull(error)) return
          tries += 1
          Atomics.wait(PAUSE, 0, 0, PIPE_PAUSE_MS)
        }
      }
    },
  }
}

const isFull = (error: unknown) => (error as NodeJS.ErrnoException).code === 'EAGAIN'

function openTarget(descriptor: number): Target {
  const stat = fstatSync(descriptor)
  if (stat.isFIFO()) {
    const own = openPipe(descriptor)
    return own === undefined ? { descriptor, isPrompt: false } : { descriptor: own, isPrompt: true }
  }
  return { descriptor, isPrompt: stat.isFile() || stat.isCharacterDevice() }
}

/** Opens a pipe without blocking. Undefined where the system cannot. */
function openPipe(descriptor: number): number | undefined {
  try {
    const own = openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK)
    if (fstatSync(own).isFIFO()) return own
    closeSync(own)
  } catch {
    // No /proc, or a pipe of another user.
  }
  return undefined
}

function writeBeside(descriptor: number, chunk: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    write(descriptor, chunk, (error, bytes) => (error ? reject(error) : resolve(bytes)))
  })
}
