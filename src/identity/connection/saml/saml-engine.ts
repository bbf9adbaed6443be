import { createHash, timingSafeEqual } from 'node:crypto'
import type { Engine, EngineCompletion, EngineResult } from '../../engine/engine.ts'
import type { SamlPerson } from './response/read-person.ts'
import { buildAuthnRequestUrl } from './settings/authn-request.ts'
import { buildSamlUrls } from './settings/saml-url.ts'

/** The columns of a SAML connection that begin and complete a sign-in. */
export interface SamlSource {
  id: string
  name: string
  issuer: string | null
  ssoUrl: string | null
  certificates: readonly string[] | null
}

/** Result of a verified response, kept until its browser continues. */
export interface KeptAnswer {
  person: SamlPerson
  codeHash: string
  /** Entity id of the provider, and hashes of the certificates that signed. */
  issuer: string
  signerHashes: string[]
}

/** The request id of a state, and back: an id is an XML name, which begins with no digit. */
const toRequestId = (state: string): string => `_${state}`
export const fromRequestId = (id: string): string | undefined => (id.startsWith('_') ? id.slice(1) : undefined)

/** The hash of a code or of a certificate. */
export const hashCode = (code: string): string => createHash('sha256').update(code).digest('base64url')

/**
 * Builds the engines of SAML connections (docs/contract/saml.md#sign-in). The response of the provider was verified where
 * it was posted, and is kept with the flow; the code proves that this browser posted it. The provider and the certificates
 * that signed must still be those of the connection.
 */
export function buildSamlConnections({ baseUrl }: { baseUrl: () => string }): (connection: SamlSource) => Engine {
  return (connection) => ({
    listProviders: () => [{ name: connection.id, label: connection.name, leavesToken: false }],
    start: async ({ state, now: issuedAt }) => {
      const { id, ssoUrl } = connection
      if (ssoUrl === null) throw new Error('a SAML connection has the URL of its provider')
      const urls = buildSamlUrls(baseUrl(), id)
      return { redirectUrl: buildAuthnRequestUrl({ id: toRequestId(state), issuedAt, ...urls, ssoUrl }), secret: {} }
    },
    complete: async (input) => completeAnswer(connection, input),
  })
}

function completeAnswer(connection: SamlSource, { callback, postedAnswer }: EngineCompletion): EngineResult {
  const { code } = callback
  if (!postedAnswer || code === undefined)
    return { kind: 'refused', reason: 'callback_incomplete', detail: postedAnswer ? 'NO_CODE' : 'NO_RESPONSE' }
  const { person, codeHash, issuer, signerHashes } = JSON.parse(postedAnswer) as KeptAnswer
  if (!timingSafeEqual(Buffer.from(hashCode(code)), Buffer.from(codeHash)))
    return { kind: 'refused', reason: 'code_refused', detail: 'OTHER_CODE' }
  const trusted = new Set(connection.certificates?.map(hashCode))
  if (issuer !== connection.issuer || !signerHashes.every((hash) => trusted.has(hash)))
    return { kind: 'refused', reason: 'answer_refused', detail: 'NO_LONGER_TRUSTED' }
  const { subject, email, name, groups } = person
  // The provider belongs to the account, which speaks for the addresses of its proven domains.
  const identity = { provider: connection.id, subject, email, isEmailVerified: true, name, avatarUrl: null }
  return { kind: 'identity', identity, groups }
}
