import { createHmac, randomUUID } from 'node:crypto'

/** The access-token hook of the simulator: its address and secret `v1,whsec_...`. */
export interface SimulatedHook {
  url: string
  secret: string
}

/** Members that the server demands of the claims in the answer of a hook. */
const REQUIRED = 'aud exp iat sub email phone role aal session_id is_anonymous'.split(' ')

/** Decision of a hook: the claims to sign, or the refusal. */
export type HookDecision = { claims: object } | { error: { http_code: number; message: string } }

/** Calls the hook as the server does: the secret signs without its version, and the answer has to hold each claim. */
export async function askHook(
  hook: SimulatedHook | undefined,
  call: { userId: string; claims: object; method: string; nowMs: number },
): Promise<HookDecision> {
  const { userId, claims, method, nowMs } = call
  if (!hook) return { claims }
  const metadata = { uuid: randomUUID(), time: new Date(nowMs).toISOString(), name: 'customize-access-token' }
  const body = JSON.stringify({ metadata, user_id: userId, claims, authentication_method: method })
  const [id, timestamp] = [randomUUID(), String(Math.floor(nowMs / 1000))]
  const key = Buffer.from(hook.secret.replace('v1,whsec_', ''), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  const answer = await fetch(hook.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    },
    body,
  })
  if (answer.status !== 200 && answer.status !== 202) return fail(`the hook answered ${answer.status}`)
  const decided = (await answer.json()) as HookDecision
  if ('error' in decided && decided.error.message !== '') return decided
  const given = 'claims' in decided ? (decided.claims as Record<string, unknown>) : {}
  const missing = REQUIRED.filter((name) => given[name] === undefined)
  return missing.length > 0 ? fail(`the output lacks ${missing.join(', ')}`) : { claims: given }
}

function fail(message: string): HookDecision {
  return { error: { http_code: 500, message } }
}
