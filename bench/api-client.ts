import { request } from 'undici'
import type { ApiFixture } from './api-case.ts'

const WRITERS = 8

/** The first administrator's address when SIGNALBOX_ADMIN_EMAIL is not set. */
const ADMIN_EMAIL = 'admin@signalbox.localhost'

/** Answer: `data` of the body. */
export interface Answer {
  headers: Record<string, string | string[] | undefined>
  data: Record<string, unknown>
}

/** A request of the API. */
export interface Call {
  jwt?: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH'
  path: string
  body?: object
  headers?: Record<string, string>
}

/** Calls the service and reads its answer. Throws with the body when the status is no 2xx. */
export async function call(origin: string, { jwt, method, path, body, headers }: Call): Promise<Answer> {
  const response = await request(`${origin}${path}`, {
    method,
    headers: {
      ...(jwt !== undefined && { authorization: `Bearer ${jwt}` }),
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body ? JSON.stringify(body) : null,
  })
  const text = await response.body.text()
  if (response.statusCode >= 300) throw new Error(`${method} ${path} answered ${response.statusCode}: ${text}`)
  return { headers: response.headers, data: (JSON.parse(text) as { data: Record<string, unknown> }).data }
}

/** Makes `count` things, some at once. The results keep the order of their numbers. */
export async function makeMany<Made>(count: number, make: (index: number) => Promise<Made>): Promise<Made[]> {
  const made: Made[] = []
  let next = 0
  const writer = async () => {
    for (let index = next++; index < count; index = next++) made[index] = await make(index)
  }
  await Promise.all(Array.from({ length: WRITERS }, writer))
  return made
}

/** Opens a session of the first administrator. */
export async function signIn(
  origin: string,
  password: string,
): Promise<Pick<ApiFixture, 'jwt' | 'userId' | 'sessionId'>> {
  const body = { email: ADMIN_EMAIL, password }
  const signedIn = await call(origin, { method: 'POST', path: '/api/v3/auth/login/local', body })
  const jwt = String(signedIn.data.jwt)
  const { data } = await call(origin, { jwt, method: 'GET', path: '/api/v3/auth/session' })
  const idOf = (row: unknown) => (row as { document_id: string }).document_id
  return { jwt, userId: idOf(data.user), sessionId: idOf(data.session) }
}
