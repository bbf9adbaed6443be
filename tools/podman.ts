import { spawnSync } from 'node:child_process'

/** Leftovers of a container. */
interface Ended {
  status: number | null
  /** Standard output and standard error. */
  output: string
}

/** Runs containers of one image, read-only and without capabilities, in the network of the machine. */
export interface Podman {
  /** Runs a command of the image to its end. */
  run(args: readonly string[], environment: Record<string, string>): Ended
  /** Runs a shell line in the image instead of the service; returns what it prints. Throws when it fails. */
  runShell(line: string): string
  /** Starts the image's own command in the background, or another one with options of its own. */
  start(
    name: string,
    environment: Record<string, string>,
    command?: { args: readonly string[]; runOptions: readonly string[] },
  ): void
  /** Runs the health check of the image; its exit code. */
  checkHealth(name: string): number | null
  /** Sends SIGTERM and waits; the exit code of the container. */
  stop(name: string): number
  readLog(name: string): string
  remove(name: string): void
  /** Bytes of an image, not compressed. */
  sizeOf(image: string): number
}

const STOP_LIMIT_S = 15

/** `globalOptions` stand before podman's command, `runOptions` after `run`. */
export function openPodman(options: {
  globalOptions: readonly string[]
  runOptions: readonly string[]
  image: string
}): Podman {
  const { globalOptions, runOptions, image } = options
  const call = (args: readonly string[], environment: Record<string, string> = {}): Ended => {
    // Values reach the container by the environment of podman, so that no process list shows them.
    const env = { ...process.env, ...environment }
    const { status, stdout, stderr } = spawnSync('podman', [...globalOptions, ...args], { env, encoding: 'utf8' })
    return { status, output: `${stdout ?? ''}${stderr ?? ''}` }
  }
  const insist = (args: readonly string[], environment?: Record<string, string>): string => {
    const { status, output } = call(args, environment)
    if (status !== 0) throw new Error(`podman ${args[0]} ended with ${status}:\n${output}`)
    return output
  }
  const locked = ['run', '--read-only', '--read-only-tmpfs=false', '--cap-drop=all', '--network=host', ...runOptions]
  const pass = (environment: Record<string, string>) => Object.keys(environment).map((name) => `--env=${name}`)
  return {
    run: (args, environment) => call([...locked, '--rm', ...pass(environment), image, ...args], environment),
    // Without a systemd podman says on standard error that it schedules no health checks.
    runShell: (line) => insist([...locked, '--rm', '--no-healthcheck', '--entrypoint=sh', image, '-c', line]),
    start: (name, environment, { args, runOptions: own } = { args: [], runOptions: [] }) => {
      insist([...locked, ...own, '--detach', `--name=${name}`, ...pass(environment), image, ...args], environment)
    },
    checkHealth: (name) => call(['exec', name, 'node', 'health-check.mjs']).status,
    stop: (name) => {
      insist(['stop', `--time=${STOP_LIMIT_S}`, name])
      return Number(insist(['inspect', '--format={{.State.ExitCode}}', name]))
    },
    readLog: (name) => call(['logs', name]).output,
    remove: (name) => {
      call(['rm', '--force', '--ignore', name])
    },
    sizeOf: (image) => Number(insist(['image', 'inspect', '--format={{.Size}}', image])),
  }
}
