import { type GuardedFetch, GuardedFetchError } from '../../outbound/guarded-fetch.ts'
import { buildExcerpt, pickResponseHeaders } from '../../outbound/post-result.ts'
import type { AttemptResult, ErrorClass } from '../../signed-post/attempt-result.ts'
import type { PostOutcome } from '../../signed-post/signed-post.ts'
import type { ClaimedDelivery } from '../delivery/claimed-delivery.ts'
import { buildScimUser, buildUserQuery, readId, readOnlyId } from './scim-user.ts'

/** What a push uses. */
export interface PushDeps {
  fetch: GuardedFetch
  /** Milliseconds, for the measured duration. */
  now: () => number
  /** Opens the sealed token of a target. Throws when no key does. */
  openToken: (target: string, sealed: string) => string
  /** With the service's version. */
  userAgent: string
}

/** What a push came to, and the id that the service has for the user now; undefined where it learned nothing of it. */
export type PushOutcome = PostOutcome & { remoteId?: string | null }

/** One answer of the service. */
interface Answer {
  status: number
  headers: Record<string, string>
  excerpt: string
  body: unknown
}

type Ask = (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: object) => Promise<Answer>

/**
 * Brings one user of a SCIM 2.0 service (RFC 7644) to the state of a delivery: creates it, replaces it, or deletes it. Up to
 * four requests, which are one attempt; the last answer is its result. Never throws.
 *
 * A user that the service has and this program does not know (its answer was lost, or somebody else made it) is found by
 * `externalId`, then by `userName`, and taken over. One that the service has lost is created again.
 */
export async function pushUser(
  deps: PushDeps,
  { target, change, remoteId }: Pick<ClaimedDelivery, 'target' | 'change' | 'remoteId'>,
  context: { signal: AbortSignal; headers: Record<string, string> },
): Promise<PushOutcome> {
  const startedAt = deps.now()
  const end = (result: AttemptResult, answer?: Answer): PushOutcome => ({
    durationMs: deps.now() - startedAt,
    result,
    responseExcerpt: answer?.excerpt ?? null,
    responseHeaders: answer?.headers ?? null,
    timings: null,
  })
  try {
    const ask = buildAsk(deps, { base: target.url, token: openToken(deps, target) }, context)
    const { answer, ...known } =
      change.user.status === 'deleted'
        ? await removeUser(ask, change.user.id, remoteId)
        : await putUser(ask, change.user, remoteId)
    return { ...end({ statusCode: answer.status }, answer), ...known }
  } catch (error) {
    if (context.signal.aborted) return end({ errorClass: 'interrupted' })
    return end({ errorClass: classify(error) })
  }
}

/** A token that no key opens. */
class TokenUnreadable extends Error {}

function openToken(deps: PushDeps, target: ClaimedDelivery['target']): string {
  try {
    return deps.openToken(target.id, target.secretEncrypted)
  } catch (error) {
    throw new TokenUnreadable('the token does not open', { cause: error })
  }
}

function classify(error: unknown): ErrorClass {
  if (error instanceof TokenUnreadable) return 'secret_unreadable'
  return error instanceof GuardedFetchError ? error.errorClass : 'protocol'
}

interface Pushed {
  answer: Answer
  remoteId?: string | null
}

async function putUser(ask: Ask, user: ClaimedDelivery['change']['user'], remoteId: string | null): Promise<Pushed> {
  const resource = buildScimUser(user)
  const replace = (id: string) => ask('PUT', `/Users/${encodeURIComponent(id)}`, { ...resource, id })
  if (remoteId !== null) {
    const answer = await replace(remoteId)
    if (answer.status !== 404) return { answer }
  }
  const created = await ask('POST', '/Users', resource)
  if (isSuccess(created)) {
    const id = readId(created.body)
    // Without an id the user can be found by its externalId later.
    return { answer: created, remoteId: id ?? null }
  }
  if (created.status !== 409) return { answer: created }
  const id = await findUser(ask, user)
  if (id === undefined) return { answer: created }
  const answer = await replace(id)
  return isSuccess(answer) ? { answer, remoteId: id } : { answer }
}

async function removeUser(ask: Ask, user: string, remoteId: string | null): Promise<Pushed> {
  const found = remoteId === null ? await ask('GET', buildUserQuery('externalId', user)) : undefined
  if (found && !isSuccess(found)) return { answer: found }
  const id = remoteId ?? readOnlyId(found?.body)
  // It never had the user.
  if (id === undefined) return { answer: found as Answer, remoteId: null }
  const answer = await ask('DELETE', `/Users/${encodeURIComponent(id)}`)
  const isGone = isSuccess(answer) || answer.status === 404 || answer.status === 410
  return isGone ? { answer: { ...answer, status: 204 }, remoteId: null } : { answer }
}

async function findUser(ask: Ask, user: ClaimedDelivery['change']['user']): Promise<string | undefined> {
  for (const [attribute, value] of [
    ['externalId', user.id],
    ['userName', user.email],
  ] as const) {
    const answer = await ask('GET', buildUserQuery(attribute, value))
    const id = isSuccess(answer) ? readOnlyId(answer.body) : undefined
    if (id !== undefined) return id
  }
  return undefined
}

function isSuccess({ status }: Answer): boolean {
  return status >= 200 && status < 300
}

/** RFC 7644, 3.1. */
const SCIM_TYPE = 'application/scim+json'

function buildAsk(
  deps: PushDeps,
  service: { base: string; token: string },
  context: { signal: AbortSignal; headers: Record<string, string> },
): Ask {
  const base = service.base.replace(/\/+$/, '')
  return async (method, path, body) => {
    const response = await deps.fetch(`${base}${path}`, {
      method,
      headers: {
        accept: SCIM_TYPE,
        authorization: `Bearer ${service.token}`,
        'user-agent': deps.userAgent,
        ...context.headers,
        ...(body && { 'content-type': SCIM_TYPE }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal: context.signal,
    })
    const bytes = new Uint8Array(await response.arrayBuffer())
    return {
      status: response.status,
      headers: pickResponseHeaders(Object.fromEntries(response.headers)),
      excerpt: buildExcerpt(bytes),
      body: parse(bytes),
    }
  }
}

/** The body of an answer; undefined when it is not JSON. */
function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
}
