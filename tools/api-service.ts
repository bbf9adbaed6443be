import { join } from 'node:path'
import { findFreePort, startProgram } from './running-service.ts'

const ROOT = join(import.meta.dirname, '..')
const START_LIMIT_MS = 60_000
const STOP_LIMIT_MS = 15_000

const ADMINISTRATOR = { email: 'admin@example.com', password: 'correct horse battery staple' }

/** Calls the API below `/api/v3/` and resolves with the `data` of a success. Throws on a problem. */
export type Call = (method: string, path: string, body?: object) => Promise<Record<string, unknown>>

/** A service that a tool calls, with an API key for everything. */
export interface CalledService {
  /** `http://127.0.0.1:<port>` */
  origin: string
  token: string
  call: Call
}

/**
 * Starts a service on loopback in development, with its embedded PostgreSQL in `dataDir` and without limits of rate, does
 * `work` with it, and stops it. `name` is that of the API key.
 */
export async function withService<Result>(
  { dataDir, name, env: own = {} }: { dataDir: string; name: string; env?: Record<string, string> },
  work: (service: CalledService) => Promise<Result>,
): Promise<Result> {
  const port = await findFreePort()
  const origin = `http://127.0.0.1:${port}`
  const { DATABASE_URL: _, ...env } = process.env
  const service = await startProgram({
    command: process.execPath,
    args: [join(ROOT, 'src', 'main.ts'), 'serve'],
    env: {
      ...env,
      APP_ENV: 'development',
      PORT: String(port),
      BASE_URL: origin,
      SIGNALBOX_DATA_DIR: dataDir,
      SIGNALBOX_ADMIN_EMAIL: ADMINISTRATOR.email,
      SIGNALBOX_ADMIN_PASSWORD: ADMINISTRATOR.password,
      RATE_LIMIT_PER_MINUTE: '10000000',
      RATE_LIMIT_STRICT_PER_MINUTE: '10000000',
      LOG_LEVEL: 'error',
      ...own,
    },
    isReady: (output) => output.includes('Stop with Ctrl-C.'),
    limitMs: START_LIMIT_MS,
  })
  try {
    const token = await createToken(origin, name)
    return await work({ origin, token, call: buildCall(origin, token) })
  } finally {
    await service.stop(STOP_LIMIT_MS)
  }
}

function buildCall(origin: string, token: string | undefined): Call {
  return async (method, path, body) => {
    const response = await fetch(`${origin}/api/v3/${path}`, {
      method,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const answer = (await response.json()) as { data: Record<string, unknown> }
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`)
    return answer.data
  }
}

/** An API key: a session could be signed out by one of the calls, and all that follow would be refused. */
async function createToken(origin: string, name: string): Promise<string> {
  const { jwt } = await buildCall(origin, undefined)('POST', 'auth/login/local', ADMINISTRATOR)
  const body = { name, permissions: ['*:*'] }
  const { key } = await buildCall(origin, String(jwt))('POST', 'identity/api-key', body)
  return String(key)
}
