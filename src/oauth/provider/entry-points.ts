import type { Problem } from '../../http/problem/problem.ts'
import { buildMethodProblem, buildPathProblem } from '../../http/route/known-path.ts'

/** The paths below the issuer (docs/contract/oauth.md#entry-points). */
export const ENTRY_POINTS = {
  authorization: '/authorize',
  code_verification: '/device',
  device_authorization: '/device-authorization',
  end_session: '/end-session',
  introspection: '/introspect',
  jwks: '/jwks',
  pushed_authorization_request: '/par',
  registration: '/register',
  revocation: '/revoke',
  token: '/token',
  userinfo: '/userinfo',
}

const READ = ['GET', 'HEAD']
const FORM = ['GET', 'HEAD', 'POST']
const PUBLIC = ['GET', 'HEAD', 'OPTIONS']
const CALL = ['POST', 'OPTIONS']

/** The methods of each path that the library serves, with a segment of any text as `*`. */
const METHODS: Readonly<Record<string, readonly string[]>> = {
  '/.well-known/openid-configuration': PUBLIC,
  '/.well-known/oauth-authorization-server': PUBLIC,
  [ENTRY_POINTS.authorization]: FORM,
  [`${ENTRY_POINTS.authorization}/*`]: READ,
  [ENTRY_POINTS.code_verification]: FORM,
  [`${ENTRY_POINTS.code_verification}/*`]: READ,
  [ENTRY_POINTS.device_authorization]: CALL,
  [ENTRY_POINTS.end_session]: FORM,
  [`${ENTRY_POINTS.end_session}/confirm`]: ['POST'],
  [`${ENTRY_POINTS.end_session}/success`]: READ,
  [ENTRY_POINTS.introspection]: CALL,
  [ENTRY_POINTS.jwks]: PUBLIC,
  [ENTRY_POINTS.pushed_authorization_request]: CALL,
  [ENTRY_POINTS.registration]: ['POST'],
  [`${ENTRY_POINTS.registration}/*`]: READ,
  [ENTRY_POINTS.revocation]: CALL,
  [ENTRY_POINTS.token]: CALL,
  [ENTRY_POINTS.userinfo]: ['GET', 'HEAD', 'POST', 'OPTIONS'],
}

/**
 * The problem of a request for a path below the issuer that the library does not serve, or by a method that the path does
 * not take, such as an OPTIONS that is no preflight: its own answer is a 404 in plain text for each. Undefined for every
 * other request. Pure.
 */
export function findEntryPointProblem(
  { method, path, isPreflight }: { method: string; path: string; isPreflight: boolean },
  { isRegistrationOpen }: { isRegistrationOpen: boolean },
): Problem | undefined {
  // The library ignores the case of a path.
  const folded = path.toLowerCase()
  const methods = METHODS[folded] ?? METHODS[folded.replace(/[^/]+$/, '*')]
  if (!methods || (!isRegistrationOpen && folded.startsWith(ENTRY_POINTS.registration))) return buildPathProblem()
  const isServed = methods.includes(method) && (method !== 'OPTIONS' || isPreflight)
  return isServed ? undefined : buildMethodProblem(methods.filter((taken) => taken !== method))
}
