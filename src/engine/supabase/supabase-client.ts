import type { GuardedFetch } from '../../outbound/guarded-fetch.ts'

/** The version of the API that gives errors one shape: `{ code, message }`. */
const API_VERSION = '2024-01-01'

/** The answer of a call: its data, or the code of the error with its status. */
export type SupabaseAnswer =
  | { ok: true; data: Readonly<Record<string, unknown>> }
  | { ok: false; status: number; code: string }

/** The calls of Supabase Auth (GoTrue) that a sign-in needs. */
export interface SupabaseClient {
  /** The address at which a browser begins. */
  buildAuthorizeUrl(query: Record<string, string>): string
  /** Redeems the code of a callback; the verifier proves that this service began. */
  redeemCode(code: string, verifier: string): Promise<SupabaseAnswer>
  /** The person of an access token; refused for a person who is banned since. */
  readUser(accessToken: string): Promise<SupabaseAnswer>
  /** Reads the public keys (RFC 7517). Rejects when the server does not answer them. */
  readKeys(): Promise<unknown>
  /** What an app asks of the person of the token, who owns the authorization from then on. */
  readAuthorization(accessToken: string, id: string): Promise<SupabaseAnswer>
  /** Decides an authorization that the person has read. Once for each. */
  decideAuthorization(accessToken: string, id: string, action: 'approve' | 'deny'): Promise<SupabaseAnswer>
  /** Removes what the person allowed an app, and ends the app's sessions there. */
  revokeGrant(accessToken: string, clientId: string): Promise<SupabaseAnswer>
  /** Ends the session of an access token, and no other. */
  endSession(accessToken: string): Promise<void>
}

/** Builds the client. Errors come in several shapes, also as text, so that they are read with caution. */
export function buildSupabaseClient(options: {
  /** `SUPABASE_URL`: the Auth server, without a trailing slash. */
  url: string
  /** `SUPABASE_ANON_KEY`, which a gateway in front of the server asks for. */
  anonKey: string | undefined
  fetch: GuardedFetch
}): SupabaseClient {
  const { url, anonKey, fetch } = options

  async function call(
    path: string,
    request: { method: string; token?: string; body?: object },
  ): Promise<SupabaseAnswer> {
    const { method, token, body } = request
    const bearer = token ?? anonKey
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: {
        accept: 'application/json',
        'x-supabase-api-version': API_VERSION,
        ...(anonKey !== undefined && { apikey: anonKey }),
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const data = await readJson(answer)
    if (answer.ok && data) return { ok: true, data }
    return { ok: false, status: answer.ok ? 502 : answer.status, code: readCode(answer, data) }
  }

  return {
    buildAuthorizeUrl: (query) => `${url}/authorize?${new URLSearchParams(query)}`,
    redeemCode: (code, verifier) =>
      call('/token?grant_type=pkce', { method: 'POST', body: { auth_code: code, code_verifier: verifier } }),
    readUser: (token) => call('/user', { method: 'GET', token }),
    readKeys: async () => {
      const answer = await call('/.well-known/jwks.json', { method: 'GET' })
      if (!answer.ok) throw new Error(`Supabase Auth answered its keys with ${answer.status} ${answer.code}`)
      return answer.data
    },
    readAuthorization: (token, id) => call(`/oauth/authorizations/${encodeURIComponent(id)}`, { method: 'GET', token }),
    decideAuthorization: (token, id, action) =>
      call(`/oauth/authorizations/${encodeURIComponent(id)}/consent`, { method: 'POST', token, body: { action } }),
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
  const code = found.find((one) => typeof one === 'string' && one !== '')
  return typeof code === 'string' ? code.replace(/[^\w.-]/g, '_').slice(0, 64) : 'unknown'
}
