import { createPublicKey } from 'node:crypto'
import { buildFieldProblem, invalidField } from '../../http/problem/problem.ts'

/** Authentication of a confidential client: by its secret, or by a JWT under a key of its own (RFC 7523). */
export const AUTH_METHODS = ['client_secret_basic', 'private_key_jwt'] as const

/** Requirements of a client, in addition to its type. */
export interface ClientProof {
  authMethod: (typeof AUTH_METHODS)[number]
  /** The public keys of `private_key_jwt` (RFC 7517), or their URL: one of both. */
  jwks: { keys: Record<string, unknown>[] } | null
  jwksUri: string | null
  /** Whether each authorization request is pushed (RFC 9126). */
  isParRequired: boolean
}

export const DEFAULT_PROOF: ClientProof = {
  authMethod: 'client_secret_basic',
  jwks: null,
  jwksUri: null,
  isParRequired: false,
}

/** The algorithms of the JWT of a client. */
export const CLIENT_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'PS256'] as const

/** Largest set of keys, in characters. */
const JWKS_LIMIT = 8_192

const RSA_BITS_LIMIT = 4_096

/** Members of private and symmetric keys (RFC 7518 section 6). */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv']

/** The rule that a key breaks, in words that complete "must ..."; undefined when it breaks none. Pure. */
function findKeyFault(jwk: Record<string, unknown>): string | undefined {
  if (PRIVATE_MEMBERS.some((name) => Object.hasOwn(jwk, name))) return 'be public: send no private or symmetric key'
  try {
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = createPublicKey({ key: jwk, format: 'jwk' })
    const bits = details?.modulusLength ?? 0
    if (type === 'rsa') return bits >= 2_048 && bits <= RSA_BITS_LIMIT ? undefined : 'have 2048 to 4096 bits'
    if (type === 'ed25519' || details?.namedCurve === 'prime256v1') return undefined
  } catch {
    return 'be a JSON Web Key (RFC 7517)'
  }
  return 'be of the type EC with P-256, OKP with Ed25519, or RSA'
}

/** Throws a 422 for proofs that contradict each other, and for keys that prove nothing. Pure. */
export function checkProof(settings: ClientProof & { type: 'confidential' | 'public' }): void {
  const { type, authMethod, jwks, jwksUri } = settings
  const hasKeys = authMethod === 'private_key_jwt'
  if (hasKeys && type === 'public')
    throw invalidField(
      'token_endpoint_auth_method',
      'public',
      'must be left out for a public client, which proves nothing',
    )
  if (jwks && jwksUri !== null)
    throw buildFieldProblem({
      path: 'jwks_uri',
      code: 'alone',
      message: 'must be null beside jwks: keep one of both',
      params: { other: 'jwks' },
    })
  if (hasKeys && !jwks && jwksUri === null)
    throw invalidField('jwks', 'missing', 'must be set for private_key_jwt, or jwks_uri')
  if (!hasKeys && (jwks || jwksUri !== null))
    throw invalidField(jwks ? 'jwks' : 'jwks_uri', 'unused', 'must be null without private_key_jwt')
  if (jwksUri !== null && URL.parse(jwksUri)?.protocol !== 'https:')
    throw invalidField('jwks_uri', 'https', 'must be an https URL')
  if (!jwks) return
  if (JSON.stringify(jwks).length > JWKS_LIMIT)
    throw buildFieldProblem({
      path: 'jwks',
      code: 'size',
      message: `must have at most ${JWKS_LIMIT} characters`,
      params: { limit: JWKS_LIMIT },
    })
  for (const [index, jwk] of jwks.keys.entries()) {
    const fault = findKeyFault(jwk)
    if (fault !== undefined) throw invalidField(`jwks.keys.${index}`, 'key', `must ${fault}`)
  }
}
