import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '..', '..')

/** Tools of the languages are kept here between runs. */
export const CACHE = join(ROOT, 'node_modules', '.cache', 'sdk')

/** A language of a client. */
export interface Language {
  name: string
  /** Finds or installs its generator; undefined, after a line that says why, where that is not possible. */
  prepare(): boolean
  /** Makes the package in an empty folder, compiles it and packs it. Throws what the failed step printed. */
  build(folder: string): void
  /** Runs the main job with the packed client. Throws what it printed when it fails. */
  test(folder: string, env: { SIGNALBOX_URL: string; SIGNALBOX_TOKEN: string }): void
}

const INSTALL_LIMIT_MS = 300_000
const STEP_LIMIT_MS = 300_000

/** Runs a command that may be missing here. Says why it failed; resolves to whether it did not. */
export function tryCommand(command: string, args: readonly string[], env: Record<string, string> = {}): boolean {
  const { status, error, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    timeout: INSTALL_LIMIT_MS,
    env: { ...process.env, ...env },
  })
  if (status !== 0) console.log(`sdk: ${command} failed: ${error?.message ?? stderr.trim().split('\n').at(-1)}`)
  return status === 0
}

/** Runs a step. Throws what it printed when it fails. */
export function runStep(
  command: string,
  args: readonly string[],
  { cwd, env = {} }: { cwd: string; env?: Record<string, string> },
): string {
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    timeout: STEP_LIMIT_MS,
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, ...env },
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? `${stdout}\n${stderr}`}`)
  return stdout
}
