import { listScopeNames } from '../scope/scope.ts'

/** The grant type of a token exchange (RFC 8693 section 2.1). */
const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:token-exchange'

/** The type of the answered token: it is used as a bearer token (RFC 8693 section 3). */
export const ACCESS_TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:access_token'

/** The types that name the subject token and the answer. */
const TOKEN_TYPES = [ACCESS_TOKEN_TYPE, 'urn:ietf:params:oauth:token-type:jwt']

/** RFC 6749 section 3.3, in characters that a log line can hold. */
const SCOPE_PATTERN = /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/
const SCOPE_LENGTH_LIMIT = 2048

/** An error by RFC 6749 section 5.2 or RFC 8693 section 2.2.2. */
export interface FormFault {
  error: 'invalid_request' | 'unsupported_grant_type' | 'invalid_target' | 'invalid_scope'
  /** For the developer of the app. Without anything of the request. */
  error_description: string
}

/** A parsed form. */
export type FormResult =
  | { ok: true; token: string; scope: string | undefined; clientId: string | undefined }
  | { ok: false; fault: FormFault }

/**
 * Reads the form of a token exchange (docs/contract/oauth-exchange.md#token-exchange-form). `targets` are the accepted
 * values of `resource` and `audience`. Unknown parameters are ignored, repeated ones refused (RFC 6749 section 3.2). Pure.
 */
export function readTokenExchange(form: Readonly<Record<string, unknown>>, targets: readonly string[]): FormResult {
  const find = (name: string) => (Object.hasOwn(form, name) && form[name] !== '' ? form[name] : undefined)
  const repeated = Object.keys(form).find((name) => typeof form[name] !== 'string')
  if (repeated !== undefined) return refuse('invalid_request', 'A parameter occurs more than once.')
  const grantType = find('grant_type')
  if (grantType === undefined) return refuse('invalid_request', 'grant_type is missing.')
  if (grantType !== GRANT_TYPE) return refuse('unsupported_grant_type', `grant_type must be ${GRANT_TYPE}.`)
  const token = find('subject_token')
  if (typeof token !== 'string') return refuse('invalid_request', 'subject_token is missing.')
  if (!TOKEN_TYPES.includes(String(find('subject_token_type'))))
    return refuse('invalid_request', `subject_token_type must be ${ACCESS_TOKEN_TYPE}.`)
  const requested = find('requested_token_type')
  if (requested !== undefined && !TOKEN_TYPES.includes(String(requested)))
    return refuse('invalid_request', `requested_token_type must be ${ACCESS_TOKEN_TYPE}.`)
  if (find('actor_token') !== undefined || find('actor_token_type') !== undefined)
    return refuse('invalid_request', 'actor_token is not supported.')
  const target = [find('resource'), find('audience')].find(
    (item) => item !== undefined && !targets.includes(String(item)),
  )
  if (target !== undefined) return refuse('invalid_target', 'resource and audience must be the address of the API.')
  const scope = find('scope')
  if (scope !== undefined && !isScope(scope))
    return refuse('invalid_scope', 'scope must hold names separated by single spaces.')
  return { ok: true, token, scope: scope && listScopeNames(scope).join(' '), clientId: asText(find('client_id')) }
}

function isScope(value: unknown): value is string {
  return typeof value === 'string' && value.length <= SCOPE_LENGTH_LIMIT && SCOPE_PATTERN.test(value)
}

function asText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function refuse(error: FormFault['error'], description: string): FormResult {
  return { ok: false, fault: { error, error_description: description } }
}
