import { createHash, timingSafeEqual } from 'node:crypto'
import type { Engine, EngineCompletion, EngineResult } from '../../engine/engine.ts'
import type { SamlPerson } from './response/read-person.ts'
import { buildAuthnRequestUrl } from './settings/authn-request.ts'
import { buildSamlUrls } from './settings/saml-url.ts'

/** The columns of a SAML connection that begin a sign-in. */
export interface SamlSource {
  id: string
  name: string
  ssoUrl: string | null
}

/** What a verified response proves, as it is kept until its browser comes. */
export interface KeptAnswer {
  person: SamlPerson
  /** Hash of the code that the browser brings. */
  codeHash: string
}

/** The request id of a state, and back: an id is an XML name, which begins with no digit. */
const toRequestId = (state: string): string => `_${state}`
export const fromRequestId = (id: string): string | undefined => (id.startsWith('_') ? id.slice(1) : undefined)

export const hashCode = (code: string): string => createHash('sha256').update(code).digest('base64url')

/**
 * Builds the engines of SAML connections (docs/contract/saml.md#sign-in). The response of the provider was verified where
 * it was posted, and is kept with the flow; the code proves that this browser posted it.
 */
export function buildSamlConnections({ baseUrl }: { baseUrl: () => string }): (connection: SamlSource) => Engine {
  return ({ id, name, ssoUrl }) => ({
    listProviders: () => [{ name: id, label: name, leavesToken: false }],
    start: async ({ state, now: issuedAt }) => {
      if (ssoUrl === null) throw new Error('a SAML connection has the URL of its provider')
      const urls = buildSamlUrls(baseUrl(), id)
      return { redirectUrl: buildAuthnRequestUrl({ id: toRequestId(state), issuedAt, ...urls, ssoUrl }), secret: {} }
    },
    complete: async (input) => completeAnswer(id, input),
  })
}

function completeAnswer(provider: string, { callback, postedAnswer }: EngineCompletion): EngineResult {
  const { code } = callback
  if (!postedAnswer || code === undefined)
    return { kind: 'refused', reason: 'callback_incomplete', detail: postedAnswer ? 'NO_CODE' : 'NO_RESPONSE' }
  const { person, codeHash } = JSON.parse(postedAnswer) as KeptAnswer
  if (!timingSafeEqual(Buffer.from(hashCode(code)), Buffer.from(codeHash)))
    return { kind: 'refused', reason: 'code_refused', detail: 'OTHER_CODE' }
  const { subject, email, name, groups } = person
  // The provider belongs to the account, which speaks for the addresses of its proven domains.
  const identity = { provider, subject, email, isEmailVerified: true, name, avatarUrl: null }
  return { kind: 'identity', identity, groups }
}
