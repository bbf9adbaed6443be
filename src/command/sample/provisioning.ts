import { createHash } from 'node:crypto'
import type { AttemptResult, ErrorClass } from '../../delivery/post/attempt-result.ts'
import { chooseWait, type DeliveryDecision, decideDelivery } from '../../provisioning/claim/outcome.ts'
import { targetSecretContextOf } from '../../provisioning/target/target.ts'
import { buildTimedIds, DAY_MS, type SamplePlan, type SampleRows } from './sample-plan.ts'
import type { SampleUser } from './users.ts'

/** Targets: name, protocol, failure of its platform, and the fraction of users affected. */
const TARGETS: readonly (readonly [string, 'webhook' | 'scim', ErrorClass | number, number])[] = [
  ['Learning platform', 'webhook', 503, 0.1],
  ['Help desk', 'scim', 'timeout', 0.15],
  ['Former payroll', 'webhook', 404, 0.3],
]

/** The target that an operator deactivated: what is queued for it rests. */
const RESTING = 2

interface Attempt {
  startedAt: Date
  endedAt: Date
  result: AttemptResult
  decision: DeliveryDecision
}

/** Builds provisioning targets, each with the state of users: delivered, refused, as a dead letter, or waiting. */
export function buildProvisioning(plan: SamplePlan, users: readonly SampleUser[]): SampleRows {
  const { idOf, before } = plan
  const targets = TARGETS.map(([name, protocol], number) => {
    const id = idOf('provisioning target', number)
    const host = `${name.toLowerCase().replaceAll(' ', '-')}.example`
    const at = before((33 + number) * DAY_MS)
    return {
      ...{ document_id: id, name, protocol, url: `https://${host}/${protocol === 'scim' ? 'scim/v2' : 'users'}` },
      ...{ is_actived: number !== RESTING, secret_encrypted: plan.seal(targetSecretContextOf(id)) },
      ...{ created_by: plan.administrator, updated_by: plan.administrator, created_at: at, updated_at: at },
    }
  })
  const rows = {
    provisioning_delivery: [],
    provisioning_attempt: [],
    provisioning_stream: [],
  } satisfies SampleRows as StreamRows
  for (const [number, { document_id: target }] of targets.entries()) addStreams(plan, rows, { target, number, users })
  return { provisioning_target: targets, ...rows }
}

type StreamRows = Required<Pick<SampleRows, 'provisioning_delivery' | 'provisioning_attempt' | 'provisioning_stream'>>

/** The first state of each user at a target, in the order of time. */
function addStreams(
  plan: SamplePlan,
  rows: StreamRows,
  { target, number, users }: { target: string; number: number; users: readonly SampleUser[] },
): void {
  const { dice, before } = plan
  const [, protocol, kind, share] = TARGETS[number]!
  const idsAt = buildTimedIds(dice)
  const times = users.map(() => before((1 + dice.next() * 27) * DAY_MS)).sort((a, b) => a.getTime() - b.getTime())
  users.forEach((user, place) => {
    const at = times[place]!
    const ids = idsAt(at)
    const id = ids.next<'provisioning delivery'>()
    const rests = number === RESTING && place >= users.length - 6
    const result: AttemptResult = dice.chance(share) ? toResult(kind) : { statusCode: protocol === 'scim' ? 201 : 200 }
    const attempts = rests ? [] : makeAttempts(plan, result, at)
    const last = attempts.at(-1)
    const status = last?.decision.status ?? 'pending'
    const userStatus = user.isActived ? 'active' : 'disabled'
    rows.provisioning_delivery.push({
      ...{ document_id: id, target, user_id: user.id, position: 1, event_id: ids.next(), type: 'user.provisioned' },
      ...{ email: user.email, name: user.name, user_status: userStatus, status, attempts: attempts.length },
      ...{ last_attempt_at: last?.startedAt ?? null, last_status_code: last ? findStatus(last.result) : null },
      ...{ last_error: last?.decision.lastError ?? null, last_duration_ms: last ? durationOf(last) : null },
      ...{ delivered_at: status === 'delivered' ? (last?.endedAt ?? null) : null, ended_at: last?.endedAt ?? null },
      ...{ created_at: at, updated_at: last?.endedAt ?? at },
    })
    addAttempts(rows, id, attempts)
    rows.provisioning_stream.push({
      ...{ target, user_id: user.id, position: 1, waiting: last ? 0 : 1, due_at: last ? null : at },
      ...{ fence: 2 * attempts.length, generation: 0, delivered_digest: null, remote_id: null },
      ...(status === 'delivered' && {
        delivered_digest: buildDigest([user.email, user.name, userStatus]),
        remote_id: protocol === 'scim' ? `${4_000 + place}` : null,
      }),
      ...(last && status !== 'delivered' && { delivered_digest: 'unknown' }),
    })
  })
}

const toResult = (kind: ErrorClass | number): AttemptResult =>
  typeof kind === 'number' ? { statusCode: kind } : { errorClass: kind }

const findStatus = (result: AttemptResult) => ('statusCode' in result ? result.statusCode : null)

const durationOf = ({ startedAt, endedAt }: Attempt) => endedAt.getTime() - startedAt.getTime()

/** The attempts of a delivery, decided by the rules of the service, until it ends. */
function makeAttempts({ dice }: SamplePlan, result: AttemptResult, createdAt: Date): Attempt[] {
  const attempts: Attempt[] = []
  for (let at: Date | null = createdAt; at; ) {
    const startedAt: Date = at
    const isTimeout = 'errorClass' in result && result.errorClass === 'timeout'
    const endedAt = new Date(startedAt.getTime() + (isTimeout ? 15_000 : dice.between(40, 300)))
    const number = attempts.length + 1
    const decision = decideDelivery({
      ...{ trigger: 'schedule', attempts: number, result, endedAt, waitMs: chooseWait(dice.random, number) },
      isTargetDeleted: false,
    })
    attempts.push({ startedAt, endedAt, result, decision })
    at = decision.nextAttemptAt
  }
  return attempts
}

function addAttempts(rows: StreamRows, delivery: string, attempts: readonly Attempt[]): void {
  attempts.forEach((attempt, place) => {
    rows.provisioning_attempt.push({
      ...{ delivery, attempt: place + 1, attempt_trigger: 'schedule', worker: 'sample:1:000000' },
      ...{ started_at: attempt.startedAt, duration_ms: durationOf(attempt), status_code: findStatus(attempt.result) },
      error_class: attempt.decision.lastError,
    })
  })
}

/** Result of the function `provisioning_digest` of the database for a user that is not deleted. */
function buildDigest(parts: readonly string[]): string {
  return createHash('md5')
    .update(`[${parts.map((part) => JSON.stringify(part)).join(', ')}]`)
    .digest('hex')
}
