import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { limit, waitFor } from '../run/wait.ts'

/** The project's folder. */
export const PROJECT_ROOT = join(import.meta.dirname, '..', '..', '..')

/** Compile cache of Node for processes of tests: it halves the time of a start. */
export const COMPILE_CACHE = join(PROJECT_ROOT, 'node_modules', '.cache', 'node-compile')

/** How a process ended. */
export interface ProcessEnding {
  code: number | null
  signal: NodeJS.Signals | null
}

/** A program of this project in a process of its own. Killed at the end of its scope (`await using`). */
export interface TestProcess extends AsyncDisposable {
  pid: number
  /** Standard output so far. */
  stdout(): string
  /** Standard error so far. */
  stderr(): string
  /** Writes to its standard input. */
  type(text: string): void
  /** Sends a signal to it, or to its group, like Ctrl-C in a terminal. */
  signal(signal: NodeJS.Signals, to?: 'process' | 'group'): void
  ended: Promise<ProcessEnding>
  /** The first match of `pattern` in its output; rejects when it ends or `limitMs` passes before. */
  waitForOutput(pattern: RegExp, limitMs?: number): Promise<RegExpExecArray>
  /** Kills it with SIGKILL and waits until it has exited. */
  kill(): Promise<ProcessEnding>
}

/** Options of a process. */
export interface ProcessOptions {
  command?: string
  args: string[]
  /** Added to the environment of this run without the variables of the service. */
  env?: Record<string, string>
  cwd?: string
  /** Whether it leads a process group of its own, for signals to the group. */
  isGroup?: boolean
}

/** Starts `node <args>` (or another command). Nothing of this run's own configuration reaches it. */
export function startProcess(options: ProcessOptions): TestProcess {
  const child = spawn(options.command ?? process.execPath, options.args, {
    cwd: options.cwd ?? PROJECT_ROOT,
    env: { ...buildCleanEnvironment(process.env), NODE_COMPILE_CACHE: COMPILE_CACHE, ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: options.isGroup ?? false,
  })
  child.stdin.on('error', () => {})
  const written = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => {
    written.out += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    written.err += chunk.toString()
  })
  // `close`, not `exit`: by then all that it wrote has been read.
  let ending: ProcessEnding | undefined
  const ended = new Promise<ProcessEnding>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      ending = { code, signal }
      resolve(ending)
    })
  })
  ended.catch(() => {})
  const describe = () => `It wrote:\n${written.out.slice(-4_000)}\n${written.err.slice(-4_000)}`
  const kill = async () => {
    if (!ending) sendSignal(child, 'SIGKILL', options.isGroup ? 'group' : 'process')
    return ended
  }
  return {
    pid: child.pid ?? 0,
    stdout: () => written.out,
    stderr: () => written.err,
    type: (text) => void child.stdin.write(text),
    signal: (signal, to = 'process') => sendSignal(child, signal, to),
    ended,
    waitForOutput: (pattern, limitMs = 180_000) =>
      waitFor(
        `output ${pattern}`,
        () => {
          const match = pattern.exec(written.out) ?? pattern.exec(written.err)
          if (!match && ending) throw new Error(`ended with ${JSON.stringify(ending)} before ${pattern}. ${describe()}`)
          return match ?? undefined
        },
        { limitMs, describe },
      ),
    kill,
    [Symbol.asyncDispose]: async () => {
      await kill().catch(() => {})
    },
  }
}

function sendSignal(child: ChildProcess, signal: NodeJS.Signals, to: 'process' | 'group'): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  try {
    process.kill(to === 'group' ? -child.pid : child.pid, signal)
  } catch (error) {
    // It exited just now.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

const OWN_VARIABLES =
  /^(SIGNALBOX_|DATABASE_|WEBHOOK_|SOCIAL_|INTEGRATION_|SSO_|AUTH_|OAUTH_|SESSION_|PASSWORD_|SECRET_KEY|APP_ENV|HOST$|PORT$|BASE_URL|LOG_LEVEL|RATE_|TRUST_PROXY|ENABLE_|METRICS_|HTTP_MAX_|VITEST|NODE_)/

/** `environment` without the variables of the service, of Node and of the test runner. */
export function buildCleanEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !OWN_VARIABLES.test(name)))
}

/** Runs a program to its end. */
export async function runToEnd(
  options: ProcessOptions,
  limitMs = 60_000,
): Promise<ProcessEnding & { stdout: string; stderr: string }> {
  await using started = startProcess(options)
  const ending = await limit(started.ended, limitMs, `the end of ${options.args.join(' ')}`)
  return { ...ending, stdout: started.stdout(), stderr: started.stderr() }
}
