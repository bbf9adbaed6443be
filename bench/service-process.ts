import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import NODE_ARGUMENTS from '../bin/node-arguments.json' with { type: 'json' }
import { stopChild } from './child-process.ts'

/** The service in a process of its own, and where it listens. */
export interface ServiceProcess {
  pid: number
  /** `http://127.0.0.1:<port>` */
  origin: string
  stop(): Promise<void>
  /** Ends it as a power failure would, and waits until it is gone. */
  kill(): Promise<void>
}

/** Connections that one process opens for requests: the service's default. */
export const POOL_SIZE = 10

export interface ServiceOptions {
  connectionString: string
  /** Its secrets lie there, so tokens stay valid over a restart. */
  dataDir: string
  poolSize: number
  adminPassword: string
  /** Arguments for Node itself, such as `--cpu-prof`. */
  nodeArguments?: string[]
  /** Variables that win over those below. */
  environment?: Record<string, string>
}

/** Nothing of the caller's shell but what programs need to run: a setting of Signalbox in it would change the result. */
function buildEnvironment(options: ServiceOptions): NodeJS.ProcessEnv {
  const kept = ['PATH', 'HOME', 'TMPDIR', 'TEMP', 'SystemRoot'].flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  })
  return {
    ...Object.fromEntries(kept),
    APP_ENV: 'development',
    HOST: '127.0.0.1',
    PORT: '0',
    LOG_LEVEL: 'warn',
    DATABASE_URL: options.connectionString,
    DATABASE_POOL_SIZE: String(options.poolSize),
    SIGNALBOX_DATA_DIR: options.dataDir,
    SIGNALBOX_ROLES: 'api,dispatcher,maintenance',
    SIGNALBOX_ADMIN_PASSWORD: options.adminPassword,
    // Both limits count each request all the same.
    RATE_LIMIT_PER_MINUTE: '10000000',
    RATE_LIMIT_STRICT_PER_MINUTE: '10000000',
    WEBHOOK_ALLOWED_PRIVATE_TARGETS: '127.0.0.1',
    // As in production, where realtime is off until a provider is named: peers publish nothing beside the webhook.
    INTEGRATION_REALTIME_EMBEDDED: 'false',
    ...options.environment,
  }
}

/**
 * Starts `src/main.ts serve` on the same Node and waits until it prints its URL. Throws when it ends before. `stack` ends
 * it too, also when it is disposed while the service starts.
 */
export async function startService(stack: AsyncDisposableStack, options: ServiceOptions): Promise<ServiceProcess> {
  if (stack.disposed) throw new Error('interrupted before the service started')
  const main = join(import.meta.dirname, '..', 'src', 'main.ts')
  const child = spawn(process.execPath, [...NODE_ARGUMENTS, ...(options.nodeArguments ?? []), main, 'serve'], {
    // A .env file of the current directory is read in development.
    cwd: options.dataDir,
    env: buildEnvironment(options),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  stack.defer(() => stopChild(child))
  const port = await readPort(child)
  const kill = async () => {
    const exited = once(child, 'exit')
    if (child.kill('SIGKILL')) await exited
  }
  return { pid: child.pid ?? 0, origin: `http://127.0.0.1:${port}`, stop: () => stopChild(child), kill }
}

function readPort(child: ChildProcess & { stdout: NodeJS.ReadableStream }): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => reject(new Error(`the service ended at its start (${code ?? signal})`)))
    // Reads on after the port is known, so that the pipe never fills up.
    createInterface({ input: child.stdout }).on('line', (line) => {
      const port = /https?:\/\/[\w.-]+:(\d+)/.exec(line)?.[1]
      if (port !== undefined) resolve(Number(port))
    })
  })
}
