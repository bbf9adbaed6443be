import type { Database } from '../../postgres/statement/database.ts'
import { defineRecord, type RecordOf } from '../../postgres/statement/record.ts'
import { closingStatement, isAfter, type Joined, statement } from '../../postgres/statement/statement.ts'
import { type GrantRecord, grant } from '../grant/grant.store.ts'
import { hashStateId } from '../grant/state-id.ts'

/** A question that the provider asks the user of an authorization. */
export interface Interaction {
  id: string
  /** Prompt: sign in, choose an account, or consent. */
  prompt: string
  reasons: string[]
  /** The parameters of the authorization request. */
  params: Record<string, string | string[] | undefined>
  /** The user that the provider knows; null before the sign-in. */
  accountId: string | null
  /** Answers to earlier questions of the same authorization. */
  lastAnswers: Record<string, unknown>
  /** The existing token family of the browser. */
  tokenFamilyId: string | null
  /** URL at which the browser continues after the answer. */
  returnTo: string
  createdAt: Date
  isAnswered: boolean
}

interface InteractionPayload {
  prompt: { name: string; reasons: string[] }
  params: Interaction['params']
  session?: { accountId?: string }
  lastSubmission?: Record<string, unknown>
  grantId?: string
  returnTo: string
  iat: number
}

const stored = defineRecord('oauth_state', ['payload', 'consumed_at']).typed<{ payload: InteractionPayload }>()

type InteractionRow = RecordOf<typeof stored> & Pick<Interaction, 'createdAt'>

function toInteraction(id: string, { payload, consumedAt, createdAt }: InteractionRow): Interaction {
  return {
    id,
    prompt: payload.prompt.name,
    reasons: payload.prompt.reasons,
    params: payload.params,
    accountId: payload.session?.accountId ?? null,
    lastAnswers: payload.lastSubmission ?? {},
    tokenFamilyId: payload.grantId ?? null,
    returnTo: payload.returnTo,
    createdAt,
    isAnswered: consumedAt !== null,
  }
}

const selectOne = statement<InteractionRow, { idHash: Buffer; now: Date }>(`
  select ${stored.members()}, to_timestamp((payload ->> 'iat')::double precision) as "createdAt" from oauth_state
  where model = 'Interaction' and id_hash = $idHash and ${isAfter('expires_at', '$now')}`)

/** The interaction with this id that has not expired. */
export async function findInteraction(db: Database, id: string, now: Date): Promise<Interaction | undefined> {
  const [row] = await selectOne(db, { idHash: hashStateId(id), now })
  return row && toInteraction(id, row)
}

const selectApp = statement<{ name: string }, { idHash: Buffer; now: Date }>(`
  select (select c.name from oauth_client c
    where c.document_id = (i.payload -> 'params' ->> 'client_id')::uuid and c.deleted_at is null) as name
  from oauth_state i where i.model = 'Interaction' and i.id_hash = $idHash and ${isAfter('i.expires_at', '$now')}`)

/** The name of the app of an interaction. */
export async function findAppName(db: Database, id: string, now: Date): Promise<string | undefined> {
  const [row] = await selectApp(db, { idHash: hashStateId(id), now })
  return row?.name ?? undefined
}

/** An interaction that is being answered, with the earlier grant of its user to its client. */
export interface ClaimedInteraction extends Interaction {
  grant: GrantRecord | undefined
}

/** `createdAt` is that of the question. */
type ClaimedRow = InteractionRow & Joined<Omit<GrantRecord, 'createdAt'>>

const claim = statement<ClaimedRow, { idHash: Buffer; now: Date; userId: string; sessionId: string | null }>(
  `select ${stored.members()}, ${grant.members()} from claim_consent($idHash, $now, $userId, $sessionId)`,
)

/**
 * Locks the user, the client and the grant until the transaction ends, and claims the consent question with this id for
 * this user. Of concurrent calls exactly one gets it. `sessionId` is that of the decision, if any: it must be valid.
 */
export async function claimConsent(
  db: Database,
  { id, userId, sessionId, now }: { id: string; userId: string; sessionId: string | null; now: Date },
): Promise<ClaimedInteraction | undefined> {
  const [row] = await claim(db, { idHash: hashStateId(id), now, userId, sessionId })
  if (!row) return undefined
  const { payload, consumedAt, ...found } = row
  const interaction = toInteraction(id, row)
  return { ...interaction, grant: found.id === null ? undefined : (found as GrantRecord) }
}

const answer = closingStatement<{ idHash: Buffer; result: string }>(`
  answered_interaction as (
    update oauth_state set payload = payload || jsonb_build_object('result', $result::jsonb)
    where model = 'Interaction' and id_hash = $idHash)`)

/** Writes the answer that the provider reads when the browser continues, with the last statement of the transaction. */
export function answerInteraction(db: Database, id: string, result: Record<string, unknown>): Promise<void> {
  return answer(db, { idHash: hashStateId(id), result: JSON.stringify(result) })
}

const keepTokenFamily = closingStatement<{
  idHash: Buffer
  payload: string
  tokenFamilyId: string
  grantId: string
  expiresAt: Date
}>(`
  kept_family as (
    insert into oauth_state (model, id_hash, payload, grant_id, consent, expires_at)
    values ('Grant', $idHash, $payload, $tokenFamilyId, $grantId, $expiresAt)
    on conflict (model, id_hash) do update set payload = excluded.payload, expires_at = excluded.expires_at)`)

/** Writes a family of tokens that rests on a grant, with the last statement of the transaction. */
export function writeTokenFamily(
  db: Database,
  input: { tokenFamilyId: string; grantId: string; payload: Record<string, unknown>; expiresAt: Date },
): Promise<void> {
  return keepTokenFamily(db, {
    ...input,
    idHash: hashStateId(input.tokenFamilyId),
    payload: JSON.stringify(input.payload),
  })
}

const narrow = closingStatement<{ grantId: string; except: string | null; members: string }>(`
  narrowed_families as (
    update oauth_state set payload = payload || $members::jsonb
    where model = 'Grant' and consent = $grantId and grant_id is distinct from $except)`)

/** Writes the scopes of a grant to its families except one, with the last statement of the transaction. */
export function narrowTokenFamilies(
  db: Database,
  input: { grantId: string; except: string | null; members: object },
): Promise<void> {
  return narrow(db, { ...input, members: JSON.stringify(input.members) })
}
