import type { UserId } from '../../base/id.ts'
import type { AttemptResult, ErrorClass } from '../../delivery/post/attempt-result.ts'
import type { PostOutcome } from '../../delivery/post/signed-post.ts'
import { type GuardedFetch, GuardedFetchError } from '../../outbound/guarded-fetch.ts'
import type { ClaimedDelivery } from '../claim/claimed-delivery.ts'
import type { ProvisionedUser } from '../claim/payload.ts'
import type { TargetId } from '../target/target.store.ts'
import {
  buildScimService,
  isSuccess,
  isTaken,
  isUnsupported,
  readWait,
  type ScimAnswer,
  type ScimService,
  UnusableAnswer,
} from './scim-service.ts'
import {
  buildScimPatch,
  buildScimUser,
  buildUserQuery,
  type FoundUser,
  findMatch,
  readId,
  type SearchedAttribute,
} from './scim-user.ts'

/** Dependencies of a push. */
export interface PushDeps {
  fetch: GuardedFetch
  /** Milliseconds, for the measured duration. */
  now: () => number
  /** Decrypts the token of a target. Throws when no key does. */
  openToken: (target: string, sealed: string) => string
  /** Whether the found user of the service belongs to another user, or an open delivery of one may change it. */
  isHeldByOther: (held: { target: TargetId; user: UserId; found: FoundUser }) => Promise<boolean>
  /** User agent, with the version of this service. */
  userAgent: string
}

/** Result of a push, and the id of the user at the service; undefined where the push learned none. */
export type PushOutcome = PostOutcome & {
  remoteId?: string | null
  /** Set for what passes, a refusal or a failure of the database: the minimum delay of the next attempt, in milliseconds. */
  retryAfterMs?: number
}

/** Result of the requests for one user. */
interface Pushed extends Pick<PushOutcome, 'remoteId' | 'retryAfterMs'> {
  answer: ScimAnswer
}

/** One user, and its state at the service after the push. */
interface Push {
  service: ScimService
  user: ProvisionedUser
  /** An earlier attempt may have succeeded without a received answer. */
  isRepeated: boolean
  isHeldByOther: (found: FoundUser) => Promise<boolean>
}

/**
 * Applies the state of a delivery to one user of a SCIM 2.0 service (RFC 7644): creates, updates or deletes it. One
 * attempt may take several requests; the last answer is its result. Rejects with an `OwnFault` where this process could
 * not send the first one; between two requests it is an interruption, as is a failure of the database.
 *
 * An unknown user of the service (a lost answer, or one created by others) is found by `externalId`, then by
 * `userName`, and adopted, unless it belongs to another user. A user that the service has lost is created again.
 */
export async function pushUser(
  deps: PushDeps,
  claimed: Pick<ClaimedDelivery, 'target' | 'change' | 'remoteId' | 'attempt'>,
  context: { signal: AbortSignal; headers: Record<string, string> },
): Promise<PushOutcome> {
  const { target, change, remoteId } = claimed
  const startedAt = deps.now()
  /** Number of answered requests. */
  let requests = 0
  const fetch: GuardedFetch = async (url, options) => {
    const response = await deps.fetch(url, options)
    requests += 1
    return response
  }
  const end = (result: AttemptResult, answer?: ScimAnswer): PushOutcome => ({
    durationMs: deps.now() - startedAt,
    result,
    responseExcerpt: answer?.excerpt ?? null,
    responseHeaders: answer?.headers ?? null,
    timings: null,
  })
  try {
    const push: Push = {
      service: buildScimService({ ...deps, ...context, fetch, base: target.url, token: openToken(deps, target) }),
      user: change.user,
      isRepeated: claimed.attempt > 1,
      isHeldByOther: (found) => askHeld(deps, { target: target.id, user: change.user.id, found }),
    }
    const bring = change.user.status === 'deleted' ? removeUser : putUser
    const { answer, retryAfterMs = readWait(answer), ...known } = await bring(push, remoteId)
    return {
      ...end({ statusCode: answer.status }, answer),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...known,
    }
  } catch (error) {
    if (context.signal.aborted) return end({ errorClass: 'interrupted' })
    if (error instanceof HolderUnknown) return { ...end({ errorClass: 'interrupted' }), retryAfterMs: 0 }
    if (error instanceof GuardedFetchError && error.ownFault) {
      if (requests === 0) throw error.ownFault
      return end({ errorClass: 'interrupted' })
    }
    return end({ errorClass: classify(error) }, error instanceof UnusableAnswer ? error.answer : undefined)
  }
}

/** A token that no key decrypts. */
class TokenUnreadable extends Error {}

function openToken(deps: PushDeps, target: ClaimedDelivery['target']): string {
  try {
    return deps.openToken(target.id, target.secretEncrypted)
  } catch (error) {
    throw new TokenUnreadable('the token does not open', { cause: error })
  }
}

/** The database did not say whose a found user is: no fault of the service. */
class HolderUnknown extends Error {}

async function askHeld(deps: PushDeps, held: Parameters<PushDeps['isHeldByOther']>[0]): Promise<boolean> {
  try {
    return await deps.isHeldByOther(held)
  } catch (error) {
    throw new HolderUnknown('the database did not answer', { cause: error })
  }
}

function classify(error: unknown): ErrorClass {
  if (error instanceof TokenUnreadable) return 'secret_unreadable'
  return error instanceof GuardedFetchError ? error.errorClass : 'protocol'
}

async function putUser(push: Push, remoteId: string | null): Promise<Pushed> {
  if (remoteId !== null) {
    const answer = await changeUser(push, remoteId)
    if (answer.status !== 404) return isTaken(answer) ? judgeAddress(push, remoteId, answer) : { answer }
  } else if (push.isRepeated) {
    const { answer, found } = await findUser(push, 'externalId')
    if (found) return takeOver(push, found)
    if (!isSuccess(answer) && !isUnsupported(answer)) return { answer }
  }
  return createUser(push, (refusal) => judgeTaken(push, refusal))
}

async function createUser(push: Push, judge: (refusal: ScimAnswer) => Promise<Pushed>): Promise<Pushed> {
  const created = await push.service('POST', '/Users', buildScimUser(push.user))
  if (isTaken(created)) return judge(created)
  if (!isSuccess(created)) return { answer: created }
  const id = readId(created.body)
  // A user needs an id at the service to be changed there.
  if (id === undefined) throw new UnusableAnswer(created)
  return { answer: created, remoteId: id }
}

/** Updates a user: by PATCH, which RFC 7644 leaves optional, else by PUT of the whole resource. */
async function changeUser({ service, user }: Push, id: string): Promise<ScimAnswer> {
  const path = `/Users/${encodeURIComponent(id)}`
  const patched = await service('PATCH', path, buildScimPatch(user))
  if (!isUnsupported(patched) || isTaken(patched)) return patched
  return service('PUT', path, { ...buildScimUser(user), id })
}

/**
 * The service has another user with this `externalId` or this address. It is adopted unless it belongs to another user
 * here; then that user's delivery must come first, and this one is retried. If it no longer exists, the user is
 * created.
 */
async function judgeTaken(push: Push, refusal: ScimAnswer): Promise<Pushed> {
  let isFree = true
  for (const attribute of ['externalId', 'userName'] as const) {
    const { answer, found } = await findUser(push, attribute)
    if (found) return (await push.isHeldByOther(found)) ? { answer: refusal, retryAfterMs: 0 } : takeOver(push, found)
    if (!isSuccess(answer) && !isUnsupported(answer)) return { answer }
    isFree = isFree && isSuccess(answer)
  }
  return isFree ? createUser(push, async (answer) => ({ answer })) : { answer: refusal }
}

/**
 * Another user of the service has the new address. If it belongs to a user here, that user's delivery must come first;
 * when the address is free by now, the user is updated.
 */
async function judgeAddress(push: Push, remoteId: string, refusal: ScimAnswer): Promise<Pushed> {
  const { answer, found } = await findUser(push, 'userName')
  if (!found && isSuccess(answer)) return { answer: await changeUser(push, remoteId) }
  return found && (await push.isHeldByOther(found)) ? { answer: refusal, retryAfterMs: 0 } : { answer: refusal }
}

async function takeOver(push: Push, { id }: FoundUser): Promise<Pushed> {
  const answer = await changeUser(push, id)
  return isSuccess(answer) ? { answer, remoteId: id } : { answer }
}

async function removeUser(push: Push, remoteId: string | null): Promise<Pushed> {
  let id = remoteId
  if (id === null) {
    const { answer, found } = await findUser(push, 'externalId')
    // The target never had the user, or does not say.
    if (!found) return isSuccess(answer) ? { answer, remoteId: null } : { answer }
    id = found.id
  }
  let answer = await push.service('DELETE', `/Users/${encodeURIComponent(id)}`)
  // A service that does not delete users gets an inactive one.
  if (answer.status === 405 || answer.status === 501) answer = await changeUser(push, id)
  const isGone = isSuccess(answer) || answer.status === 404 || answer.status === 410
  return isGone ? { answer: { ...answer, status: 204 }, remoteId: null } : { answer }
}

async function findUser(
  { service, user }: Push,
  attribute: SearchedAttribute,
): Promise<{ answer: ScimAnswer; found: FoundUser | undefined }> {
  const value = attribute === 'externalId' ? user.id : user.email
  const answer = await service('GET', buildUserQuery(attribute, value))
  return { answer, found: isSuccess(answer) ? findMatch(answer.body, attribute, value) : undefined }
}
