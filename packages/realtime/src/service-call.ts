import type { Position, Replay } from './resume-merge.ts'

/** How long a call of the service may take. A client library would wait for ever. */
const CALL_LIMIT_MS = 10_000

/** Connection settings, from `GET /api/v3/realtime/realtime/config`. */
export interface ConnectionSettings {
  key: string
  cluster: string
  ws_host: string
  ws_port: number
  ws_path: string
  force_tls: boolean
}

/** Result of a call of the service: its answer, a refusal that stays one, or nothing for the moment. */
export type ServiceAnswer<Body> =
  | { kind: 'answer'; body: Body }
  | { kind: 'refused'; reason: string }
  | { kind: 'unavailable'; reason: string }

/** The token of the user, fetched for each call, so that one that was refreshed is used. */
export type TokenProvider = () => string | undefined | Promise<string | undefined>

/** Proof of a subscription: of a private channel with the position where a later one resumes, or of a member. */
export interface ChannelProof {
  auth: string
  position?: string
  /** JSON text. */
  channel_data?: string
}

/** Calls Signalbox. */
export interface Service {
  readSettings(): Promise<ServiceAnswer<ConnectionSettings>>
  authorize(request: { socketId: string; channel: string }): Promise<ServiceAnswer<ChannelProof>>
  /** Asks what a channel published since a position. */
  resume(request: Position & { channel: string }): Promise<ServiceAnswer<Replay>>
  authenticate(request: { socketId: string }): Promise<ServiceAnswer<{ auth: string; user_data: string }>>
}

/** Builds the calls. `fetch` is that of the browser unless given. */
export function buildService(options: { service: string; token: TokenProvider; fetch: typeof fetch }): Service {
  const base = `${options.service.replace(/\/+$/, '')}/api/v3/realtime/realtime`

  async function call<Body>(path: string, body?: object): Promise<ServiceAnswer<Body>> {
    try {
      const token = body ? await options.token() : undefined
      const response = await options.fetch(`${base}/${path}`, {
        method: body ? 'POST' : 'GET',
        headers: {
          accept: 'application/json',
          ...(body && { 'content-type': 'application/json' }),
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(CALL_LIMIT_MS),
      })
      return await readAnswer<Body>(response)
    } catch (error) {
      return { kind: 'unavailable', reason: error instanceof Error ? error.message : 'no answer' }
    }
  }

  async function callForData<Data>(path: string, body?: object): Promise<ServiceAnswer<Data>> {
    const answer = await call<{ data: Data }>(path, body)
    return answer.kind === 'answer' ? { kind: 'answer', body: answer.body.data } : answer
  }

  return {
    readSettings: () => callForData('config'),
    authorize: ({ socketId, channel }) => {
      const body = { socket_id: socketId, channel_name: channel }
      return channel.startsWith('presence-') ? call('presence-auth', body) : call('auth', { ...body, resume: true })
    },
    resume: ({ channel, ...position }) => callForData('resume', { channel_name: channel, ...position }),
    authenticate: ({ socketId }) => call('user-auth', { socket_id: socketId }),
  }
}

async function readAnswer<Body>(response: Response): Promise<ServiceAnswer<Body>> {
  const body = (await response.json().catch(() => undefined)) as (Body & { detail?: string }) | undefined
  if (response.status === 200 && body !== undefined) return { kind: 'answer', body }
  const reason = body?.detail ?? `status ${response.status}`
  const isFinal = [400, 401, 403, 404, 415, 422].includes(response.status)
  return { kind: isFinal ? 'refused' : 'unavailable', reason }
}
