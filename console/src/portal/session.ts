import { isProblem, type Schemas } from '@signalbox/client'
import { useSyncExternalStore } from 'react'
import { api, sendCallsBy } from '../frame/api.ts'
import { buildListeners } from '../frame/listeners.ts'
import { askForLink, hasHost, tell } from './host.ts'

type Opened = Schemas['OpenedPortalSession']

/** Where the session of this page stands. It is in memory alone: it ends with the page. */
export type PortalState =
  | { is: 'opening' }
  | { is: 'open'; session: Opened; endsAtMs: number }
  | { is: 'ended'; returnUrl: string | null; error: unknown }

/** How long before its end a session is opened anew, ms. */
const RENEW_BEFORE_MS = 60_000

let state: PortalState = { is: 'opening' }
let renewing: Promise<boolean> | undefined
let timer: ReturnType<typeof setTimeout> | undefined
const listeners = buildListeners()

function set(next: PortalState): void {
  state = next
  listeners.tell()
}

/** Where the session stands, again at each change. */
export const usePortalState = (): PortalState => useSyncExternalStore(listeners.subscribe, () => state)

const LINK_PATTERN = /^#token=([\w-]{1,200})$/

/** Takes the link's token out of the address, so that it is neither shown nor in the history. */
export function takeLinkToken(): string | undefined {
  const token = LINK_PATTERN.exec(location.hash)?.[1]
  if (token !== undefined) history.replaceState(null, '', `${location.pathname}${location.search}#/`)
  return token
}

const bearer = (request: Request, token: string | undefined) => {
  if (token !== undefined) request.headers.set('authorization', `Bearer ${token}`)
  return fetch(request, { credentials: 'omit', referrerPolicy: 'no-referrer' })
}

const tokenOf = () => (state.is === 'open' ? state.session.token : undefined)

/** Sends a call with the token of the session; one that finds it ended is sent once more with that of a new one. */
async function send(request: Request): Promise<Response> {
  const again = request.clone()
  const answer = await bearer(request, tokenOf())
  if (answer.status !== 401 || state.is !== 'open') return answer
  return (await renew('refused')) ? bearer(again, tokenOf()) : answer
}

/** Opens the session of the link that the page was called with. */
export async function openFirst(token: string | undefined): Promise<void> {
  sendCallsBy(send)
  window.addEventListener('pagehide', leave)
  window.addEventListener('hashchange', keepReturnUrl)
  if (token === undefined) return end(null)
  await openLink(token).catch((error: unknown) => end(error))
}

/** Opens a session in place of an ended one, once the framing page has connected. */
export async function reopen(): Promise<void> {
  if (state.is === 'ended') await renew('refused')
}

async function openLink(token: string): Promise<void> {
  const { data } = await api.auth.portalSessionOpen({ body: { token } })
  const before = state.is === 'open' ? state.session : undefined
  // Another account would show what was read of the first: the whole page begins anew.
  if (before && before.account.document_id !== data.account.document_id) return location.reload()
  // By a clock that nobody sets: that of a computer may be hours off.
  const endsAtMs = performance.now() + data.expires_in * 1_000
  set({ is: 'open', session: data, endsAtMs })
  clearTimeout(timer)
  // A session shorter than that is opened anew at its half.
  const waitMs = Math.max(data.expires_in * 500, data.expires_in * 1_000 - RENEW_BEFORE_MS)
  timer = setTimeout(() => void renew('due'), waitMs)
  keepReturnUrl()
  tell({
    type: 'opened',
    session: data.document_id,
    account: data.account.document_id,
    expires_at: data.expires_at,
  })
}

/** Why a session is opened anew: it ends soon, or a call was refused. */
type Reason = 'due' | 'refused'

/** Opens a new session by a link of the framing page. False when there is none. */
function renew(reason: Reason): Promise<boolean> {
  renewing ??= renewOnce(reason).finally(() => {
    renewing = undefined
  })
  return renewing
}

async function renewOnce(reason: Reason): Promise<boolean> {
  const token = hasHost() ? await askForLink() : undefined
  try {
    if (token === undefined)
      endIn(reason === 'due' && state.is === 'open' ? Math.max(0, state.endsAtMs - performance.now()) : 0)
    else await openLink(token)
  } catch (error) {
    end(error)
  }
  return token !== undefined && state.is === 'open'
}

/** Ends the session at its time: until then, what is typed can still be saved. */
function endIn(ms: number): void {
  clearTimeout(timer)
  if (ms === 0) end(null)
  else timer = setTimeout(() => end(null), ms)
}

function end(error: unknown): void {
  if (state.is === 'ended') return
  clearTimeout(timer)
  const returnUrl = state.is === 'open' ? state.session.return_url : readReturnUrl()
  set({ is: 'ended', returnUrl, error: isProblem(error, 'link_invalid') ? null : error })
  tell({ type: 'ended' })
}

/** Leaves the platform's page, which is no secret, in the entry of the history: a reload finds it there. */
function keepReturnUrl(): void {
  if (state.is === 'open') history.replaceState({ returnUrl: state.session.return_url }, '')
}

/** The platform's page of the session before a reload. */
function readReturnUrl(): string | null {
  const kept = (history.state as { returnUrl?: unknown } | null)?.returnUrl
  return typeof kept === 'string' ? kept : null
}

/** Ends the session with its page, unless the browser keeps the page to come back to it. */
function leave({ persisted }: PageTransitionEvent): void {
  const token = tokenOf()
  if (persisted || token === undefined) return
  void fetch('/api/v3/auth/portal-session/end', {
    method: 'POST',
    keepalive: true,
    credentials: 'omit',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  })
}
