import { type ChildProcess, spawn } from 'node:child_process'
import { createServer } from 'node:net'

/** A port of loopback that nothing listens on. */
export async function findFreePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (typeof address !== 'object' || !address) throw new Error('no free port')
  return address.port
}

/** Rejects when `promise` takes over `ms`. */
export function limit<Value>(promise: Promise<Value>, ms: number, what: string): Promise<Value> {
  const timer = Promise.withResolvers<never>()
  const handle = setTimeout(() => timer.reject(new Error(`${what} took over ${ms} ms`)), ms)
  return Promise.race([promise, timer.promise]).finally(() => clearTimeout(handle))
}

/** A program that was started, in a process group of its own, so that nothing it starts is left running. */
export interface StartedProgram {
  child: ChildProcess
  exited: Promise<number | null>
  /** Asks it to stop; ends the whole group when it has not stopped after `limitMs`. */
  stop(limitMs: number): Promise<number | null>
}

/** Starts a program and resolves when its standard output matches `ready`. */
export async function startProgram(options: {
  command: string
  args: readonly string[]
  env: NodeJS.ProcessEnv
  cwd?: string
  /** Decides over everything that was printed so far. */
  isReady: (output: string) => boolean
  limitMs: number
  onOutput?: (chunk: Buffer) => void
}): Promise<StartedProgram> {
  const { command, args, env, cwd, isReady, limitMs, onOutput } = options
  const child = spawn(command, args, { env, cwd, stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  const exited = new Promise<number | null>((resolve) => child.on('exit', resolve))
  const started: StartedProgram = {
    child,
    exited,
    stop: async (stopLimitMs) => {
      child.kill('SIGTERM')
      return limit(exited, stopLimitMs, `the stop of ${command}`).finally(() => killGroup(child))
    },
  }
  const ready = new Promise<void>((resolve, reject) => {
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => {
      onOutput?.(chunk)
      output += chunk.toString()
      if (isReady(output)) resolve()
    })
    void exited.then((code) => reject(new Error(`${command} ended with ${code} before it was ready`)))
  })
  ready.catch(() => {})
  try {
    await limit(ready, limitMs, `the start of ${command}`)
    return started
  } catch (error) {
    killGroup(child)
    throw error
  }
}

/** Ends the group of a program that still runs. */
function killGroup(child: ChildProcess): void {
  if (child.exitCode === null && child.signalCode === null && child.pid !== undefined)
    process.kill(-child.pid, 'SIGKILL')
}
