import { VERSION } from '../../../base/version.ts'
import type { GuardedFetch } from '../../../outbound/guarded-fetch.ts'

/** The version of the API that gives errors one shape: `{ code, message }`. */
const API_VERSION = '2024-01-01'

/** The answer of a call: its data, or the code of the error with its status. */
export type SupabaseAnswer =
  | { ok: true; data: Readonly<Record<string, unknown>> }
  | { ok: false; status: number; code: string }

interface SupabaseRequest {
  method: string
  token?: string
  body?: object
}

/** The calls of Supabase Auth (GoTrue) that a sign-in needs. */
export interface SupabaseClient {
  /** Begins a sign-in: `location` is where the browser continues, at the provider. */
  beginAuthorization(query: Record<string, string>): Promise<SupabaseAnswer>
  /** Redeems the code of a callback; the verifier proves that this service began. */
  redeemCode(code: string, verifier: string): Promise<SupabaseAnswer>
  /** The user of an access token; refused for a user who is banned since. */
  readUser(accessToken: string): Promise<SupabaseAnswer>
  /** Reads the public keys (RFC 7517). Rejects when the server does not answer them. */
  readKeys(): Promise<unknown>
  /** The providers that are on, and how addresses are confirmed. */
  readSettings(): Promise<SupabaseAnswer>
  hasOAuth(): Promise<boolean>
  /** Request of an app to the user of the token, who owns the authorization from then on. */
  readAuthorization(accessToken: string, id: string): Promise<SupabaseAnswer>
  /** Decides an authorization that the user has read. Once for each. */
  decideAuthorization(accessToken: string, id: string, action: 'approve' | 'deny'): Promise<SupabaseAnswer>
  /** Apps that the user allows, with their scopes. */
  listGrants(accessToken: string): Promise<SupabaseAnswer>
  /** Removes the user's grant of an app, and revokes the app's sessions there. */
  revokeGrant(accessToken: string, clientId: string): Promise<SupabaseAnswer>
  /** Revokes only the session of an access token. */
  endSession(accessToken: string): Promise<void>
}

/** Builds the client. Errors come in several shapes, also as text, so that they are read with caution. */
export function buildSupabaseClient(options: {
  /** `SUPABASE_URL`: the Auth server, without a trailing slash. */
  url: string
  /** `SUPABASE_ANON_KEY`, which a gateway in front of the server asks for: the publishable key, or the older anon key. */
  anonKey: string | undefined
  fetch: GuardedFetch
}): SupabaseClient {
  const { url, anonKey, fetch } = options

  function send(path: string, { method, token, body }: SupabaseRequest): Promise<Response> {
    return fetch(`${url}${path}`, {
      method,
      headers: {
        accept: 'application/json',
        // Networks in front of a hosted server refuse requests without one.
        'user-agent': `Signalbox/${VERSION}`,
        'x-supabase-api-version': API_VERSION,
        // Not also as a bearer token: a publishable key is not a JWT, and gateways refuse it there.
        ...(anonKey !== undefined && { apikey: anonKey }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
  }

  async function call(path: string, request: SupabaseRequest): Promise<SupabaseAnswer> {
    const answer = await send(path, request)
    const data = await readJson(answer)
    if (answer.ok && data) return { ok: true, data }
    return { ok: false, status: answer.ok ? 502 : answer.status, code: readCode(answer, data) }
  }

  return {
    beginAuthorization: async (query) => {
      const answer = await send(`/authorize?${new URLSearchParams(query)}`, { method: 'GET' })
      const location = URL.parse(answer.headers.get('location') ?? '')
      if (answer.status === 302 && location && /^https?:$/.test(location.protocol))
        return { ok: true, data: { location: location.href } }
      return { ok: false, status: answer.status, code: readCode(answer, await readJson(answer)) }
    },
    redeemCode: (code, verifier) =>
      call('/token?grant_type=pkce', { method: 'POST', body: { auth_code: code, code_verifier: verifier } }),
    readUser: (token) => call('/user', { method: 'GET', token }),
    readKeys: async () => {
      const answer = await call('/.well-known/jwks.json', { method: 'GET' })
      if (!answer.ok) throw new Error(`Supabase Auth answered its keys with ${answer.status} ${answer.code}`)
      return answer.data
    },
    readSettings: () => call('/settings', { method: 'GET' }),
    hasOAuth: async () => {
      // The path exists only while the server is on.
      const answer = await call('/oauth/authorizations/none', { method: 'GET' })
      return !answer.ok && answer.code === 'no_authorization'
    },
    readAuthorization: (token, id) => call(`/oauth/authorizations/${encodeURIComponent(id)}`, { method: 'GET', token }),
    decideAuthorization: (token, id, action) =>
      call(`/oauth/authorizations/${encodeURIComponent(id)}/consent`, { method: 'POST', token, body: { action } }),
    listGrants: (token) => call('/user/oauth/grants', { method: 'GET', token }),
    revokeGrant: (token, clientId) =>
      call(`/user/oauth/grants?client_id=${encodeURIComponent(clientId)}`, { method: 'DELETE', token }),
    endSession: async (token) => {
      await call('/logout?scope=local', { method: 'POST', token })
    },
  }
}

async function readJson(answer: Response): Promise<Record<string, unknown> | undefined> {
  if (answer.status === 204) return {}
  try {
    const value: unknown = await answer.json()
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** The code of an error: of its header, its body in either version, or none. */
function readCode(answer: Response, data: Record<string, unknown> | undefined): string {
  const found = [answer.headers.get('x-sb-error-code'), data?.error_code, data?.code, data?.error]
  const code = found.find((row) => typeof row === 'string' && row !== '')
  return typeof code === 'string' ? code.replace(/[^\w.-]/g, '_').slice(0, 64) : 'unknown'
}
