import fs from 'node:fs'
import { runCommandLine } from '../../../src/command/program.ts'
import { buildCleanEnvironment, PROJECT_ROOT, type ProcessEnding } from './process.ts'

/** A command that ended, with what it wrote. */
export type CommandEnd = ProcessEnding & { stdout: string; stderr: string }

/** How a command runs. */
interface CommandOptions {
  /** Added to the environment of this run without the variables of the service. */
  env?: Record<string, string>
  cwd?: string
}

let last: Promise<unknown> = Promise.resolve()

/**
 * Runs `signalbox <args>` in the process of the tests, with the environment, folder and output of a process of its own, of which
 * a start takes more work than most commands. Not for `listen`, and for `serve` only where it refuses to start: once they run they
 * end by a signal. One runs at a time.
 */
export function runCommand(args: readonly string[], options: CommandOptions = {}): Promise<CommandEnd> {
  const run = last.then(() => runAlone(args, options))
  last = run.catch(() => {})
  return run
}

async function runAlone(
  args: readonly string[],
  { env = {}, cwd = PROJECT_ROOT }: CommandOptions,
): Promise<CommandEnd> {
  const kept = { env: process.env, cwd: process.cwd(), exitCode: process.exitCode }
  const written = { stdout: '', stderr: '' }
  const capture = (name: 'stdout' | 'stderr') => {
    const { write } = process[name]
    process[name].write = (chunk: string | Uint8Array) => {
      written[name] += chunk
      return true
    }
    return () => {
      process[name].write = write
    }
  }
  process.env = { ...buildCleanEnvironment(kept.env), ...env }
  process.chdir(cwd)
  process.exitCode = undefined
  const releases = [capture('stdout'), capture('stderr'), captureDescriptors(written), keepListeners()]
  try {
    const failure = await runCommandLine(args)
    return { code: failure ?? Number(process.exitCode ?? 0), signal: null, ...written }
  } finally {
    for (const release of releases) release()
    process.chdir(kept.cwd)
    process.env = kept.env
    process.exitCode = kept.exitCode
  }
}

/** Takes what is written to the descriptors of the outputs, as the logger does. Returns what ends it. */
function captureDescriptors(written: { stdout: string; stderr: string }): () => void {
  const { writeSync } = fs
  const capture = (descriptor: number, chunk: string, ...rest: []) => {
    if (descriptor !== 1 && descriptor !== 2) return writeSync(descriptor, chunk, ...rest)
    written[descriptor === 1 ? 'stdout' : 'stderr'] += chunk
    return Buffer.byteLength(chunk)
  }
  fs.writeSync = capture as typeof writeSync
  return () => {
    fs.writeSync = writeSync
  }
}

/** Events that a command listens to for the rest of its process. */
const OF_THE_PROCESS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'uncaughtExceptionMonitor'] as const

/** Notes who listens to this process and to its standard output; the function returned takes away who came since. */
function keepListeners(): () => void {
  const places: [NodeJS.EventEmitter, string][] = [
    ...OF_THE_PROCESS.map((event): [NodeJS.EventEmitter, string] => [process, event]),
    [process.stdout, 'error'],
  ]
  const kept = places.map(([emitter, event]) => ({ emitter, event, before: emitter.listeners(event) }))
  return () => {
    for (const { emitter, event, before } of kept)
      for (const listener of emitter.listeners(event))
        if (!before.includes(listener)) emitter.off(event, listener as () => void)
  }
}
