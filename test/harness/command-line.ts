import { runCommandLine } from '../../src/command/program.ts'
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
 * a start takes more work than most commands. Not for `serve` and `listen`, which take signals. One runs at a time.
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
  const releases = [capture('stdout'), capture('stderr')]
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
