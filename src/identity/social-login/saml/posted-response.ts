import type { ConnectionId } from '../../../base/id.ts'
import { notFound } from '../../../http/problem/problem.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import type { SamlRefused } from '../../connection/saml/response/saml-refusal.ts'
import { readResponse, type SamlProof, verifyResponse } from '../../connection/saml/response/verify-response.ts'
import { fromRequestId, hashCode, type KeptAnswer } from '../../connection/saml/saml-engine.ts'
import { buildSamlUrls } from '../../connection/saml/settings/saml-url.ts'
import { noteAssertion } from '../../connection/saml/used-assertion.ts'
import { findSamlVerifier } from '../../connection/sign-in-connection.ts'
import { addToQuery } from '../completion-answer.ts'
import { readState } from '../flow/flow-state.ts'
import { findFlow, keepPostedAnswer } from '../flow/login-flow.store.ts'
import type { Refusal } from '../refusal-problem.ts'
import { answerContextOf, buildCallbackUrl, type FlowDeps } from '../social-login.ts'

const CODE_BYTES = 32

/** A response that proves a person, or the reason of its refusal. */
export type JudgedResponse =
  | { kind: 'proven'; connection: ConnectionId; issuer: string; state: string; stateHash: Buffer; proof: SamlProof }
  | {
      kind: 'refused'
      reason: Refusal
      detail: string | null
      /** The connection whose sign-in it answers; undefined where none was found. */
      connection?: ConnectionId
    }

type RefusedResponse = Extract<JudgedResponse, { kind: 'refused' }>

const refuse = (reason: Refusal, detail: string | null = null): RefusedResponse => ({ kind: 'refused', reason, detail })

/** Checks a posted response (docs/contract/saml.md#checks), whose flow its request alone finds. Throws 404. */
export async function judgeResponse(
  deps: FlowDeps,
  db: Database,
  { connection: id, response, now }: { connection: string; response: string; now: Date },
): Promise<JudgedResponse> {
  const verifier = await findSamlVerifier(db, id)
  if (!verifier) throw notFound('connection')
  const read = readResponse(response)
  if ('refusal' in read) return refuseResponse(read)
  const { inResponseTo } = read.shape
  const state = fromRequestId(inResponseTo)
  const known = readState(deps.keyring, state, { provider: verifier.id, now })
  if ('reason' in known) return refuse(known.reason)
  const flow = await findFlow(db, { stateHash: known.hash, provider: verifier.id })
  if (!flow) return refuse(known.isExpired ? 'state_expired' : 'state_unknown')
  if (flow.consumedAt || flow.postedAnswer !== null) return refuse('state_replayed')
  if (flow.expiresAt <= now) return refuse('state_expired')
  const { entityId: audience, acsUrl: recipient } = buildSamlUrls(deps.baseUrl(), verifier.id)
  const proof = await verifyResponse(read, { ...verifier, audience, recipient, requestId: inResponseTo, now })
  if ('refusal' in proof) return { ...refuseResponse(proof), connection: verifier.id }
  const { issuer } = verifier
  return { kind: 'proven', connection: verifier.id, issuer, state: state ?? '', stateHash: known.hash, proof }
}

function refuseResponse({ refusal, detail }: SamlRefused): RefusedResponse {
  const whole = detail === null || detail === '' ? refusal : `${refusal} ${detail}`
  return refuse(refusal === 'idp_refused' ? 'denied' : 'answer_refused', whole)
}

/** Keeps a proven person with its flow, encrypted, once. Returns the way on, with a code for this browser. */
export async function keepResponse(
  deps: FlowDeps,
  tx: Database,
  { judged, now }: { judged: Extract<JudgedResponse, { kind: 'proven' }>; now: Date },
): Promise<{ location: string } | RefusedResponse> {
  const { connection, issuer, state, stateHash, proof } = judged
  const assertion = { connection, id: proof.assertionId, expiresAt: proof.endsAt }
  if (!(await noteAssertion(tx, assertion))) return { ...refuse('answer_refused', 'replayed'), connection }
  const code = deps.random.bytes(CODE_BYTES).toString('base64url')
  const signerHashes = proof.signers.map(hashCode)
  const answer: KeptAnswer = { person: proof.person, codeHash: hashCode(code), issuer, signerHashes }
  const sealed = deps.keyring.seal(JSON.stringify(answer), answerContextOf(stateHash))
  const kept = await keepPostedAnswer(tx, { stateHash, provider: connection, answer: sealed, now })
  if (!kept) return { ...refuse('state_replayed'), connection }
  return { location: addToQuery(buildCallbackUrl(deps.baseUrl(), connection), { state, code }) }
}
