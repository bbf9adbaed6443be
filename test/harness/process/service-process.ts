import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { TestAnswer } from '../app/app.ts'
import { SMALL_HASH_ENVIRONMENT } from '../app/small-hash.ts'
import { buildSecretEnvironment, TEST_METRICS_TOKEN } from '../app/test-secrets.ts'
import { limit, waitFor } from '../run/wait.ts'
import { bundleProgram } from './bundled-program.ts'
import { PROJECT_ROOT, type ProcessEnding, startProcess, type TestProcess } from './process.ts'

/** The base URL of every process of a test, so that one token is valid in all of them, on any port. */
export const TEST_BASE_URL = 'http://signalbox.test'

/** A running service in a process of its own. */
export interface ServiceProcess extends TestProcess {
  /** The URL that it listens on. */
  url: string
  /** Calls its API as the administrator. Rejects when the connection breaks. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<TestAnswer>
  /** Sends a stop signal and waits for its exit. */
  stop(signal?: NodeJS.Signals): Promise<ProcessEnding>
}

/** Options of a service. */
export interface ServiceOptions {
  databaseUrl: string
  token: string
  env?: Record<string, string>
  /** The folder of the release to start. Default: this one, as one file. */
  root?: string
  /** Arguments of Node. Default: room for the objects of a start, most of which die young, so that it collects less. */
  nodeArguments?: readonly string[]
}

const NODE_ARGUMENTS = ['--min-semi-space-size=16']

/** The program of a checkout, or of a release in a folder. */
export function findProgram(root: string): string {
  const released = join(root, 'src', 'main.js')
  return existsSync(released) ? released : join(root, 'src', 'main.ts')
}

/** Starts `signalbox serve` and waits until it is ready, or has ended. */
export async function startService(options: ServiceOptions): Promise<ServiceProcess> {
  const { root, nodeArguments = NODE_ARGUMENTS } = options
  const program = root === undefined ? await bundleProgram() : findProgram(root)
  const started = startProcess({
    args: [...nodeArguments, program, 'serve'],
    env: {
      ...buildServiceEnvironment(options.databaseUrl),
      // No later run finds what one from a folder that is removed writes into the cache; another may have one of its own.
      ...(root !== undefined &&
        root !== PROJECT_ROOT &&
        !options.env?.NODE_COMPILE_CACHE && { NODE_DISABLE_COMPILE_CACHE: '1' }),
      ...options.env,
    },
  })
  try {
    const [, port] = await started.waitForOutput(/Server listening at http:\/\/127\.0\.0\.1:(\d+)/)
    const url = `http://127.0.0.1:${port}`
    // One with a crash point may come to it first.
    let hasEnded = false
    void started.ended.then(() => {
      hasEnded = true
    })
    await waitFor('readiness', async () => (await isReady(url)) || hasEnded)
    return {
      ...started,
      url,
      call: (method, path, body, headers) =>
        callService({ url, token: options.token }, { method, path, body, headers }),
      stop: async (signal = 'SIGTERM') => {
        started.signal(signal)
        // The process gives up after 9.5 s by its own clock; the rest is what a busy machine takes.
        return limit(started.ended, 60_000, `the stop after ${signal}`)
      },
    }
  } catch (error) {
    await started.kill()
    throw error
  }
}

/** The environment of a service of tests. */
export function buildServiceEnvironment(databaseUrl: string): Record<string, string> {
  return {
    APP_ENV: 'test',
    PORT: '0',
    BASE_URL: TEST_BASE_URL,
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_SIZE: '6',
    LOG_LEVEL: 'info',
    RATE_LIMIT_PER_MINUTE: '1000000',
    METRICS_TOKEN: TEST_METRICS_TOKEN,
    ...buildSecretEnvironment(),
    ...SMALL_HASH_ENVIRONMENT,
  }
}

/** A connection for one call: a service may get the port of one that ended, whose connections this process still has. */
const OWN_CONNECTION = { connection: 'close' }

/** Whether `/readyz` is 200. */
export async function isReady(url: string): Promise<boolean> {
  const response = await fetch(`${url}/readyz`, { headers: OWN_CONNECTION }).catch(() => undefined)
  await response?.arrayBuffer()
  return response?.status === 200
}

/** One call of the API. */
export async function callService(
  service: { url: string; token?: string },
  request: { method: string; path: string; body?: unknown; headers?: Record<string, string> | undefined },
): Promise<TestAnswer> {
  const response = await fetch(`${service.url}${request.path}`, {
    method: request.method,
    headers: {
      ...OWN_CONNECTION,
      ...(service.token !== undefined && { authorization: `Bearer ${service.token}` }),
      ...(request.body !== undefined && { 'content-type': 'application/json' }),
      ...request.headers,
    },
    ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json')
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: isJson ? JSON.parse(text) : text,
  }
}
