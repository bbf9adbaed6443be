import { buildFieldProblem, invalidField } from '../../http/problem/problem.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import { type CallbackRules, checkCallbackUrl } from '../../outbound/guard/callback-url.ts'
import type { UpdateConnectionBody } from './connection.schema.ts'
import type { ConnectionChange, ConnectionRecord, KindColumns } from './connection.store.ts'
import { readNewSaml, readSamlChange } from './saml/settings/saml-settings.ts'

/** The parts of the kinds in a request: that of the connection's kind, and no other. */
export type KindInput = Pick<Static<typeof UpdateConnectionBody>, 'oidc' | 'saml'>

interface Deps {
  /** Rules for the URL of an issuer: those of callbacks. */
  callbackRules: CallbackRules
}

const DEFAULT_SCOPES = ['openid', 'email', 'profile']

const NO_COLUMNS: KindColumns = {
  issuer: null,
  clientId: null,
  scopes: null,
  groupsClaim: null,
  isEmailTrusted: null,
  ssoUrl: null,
  certificates: null,
  certificatesEndAt: null,
  emailAttribute: null,
  nameAttribute: null,
}

/** The columns of the kind of a new connection, and its secret. Throws a 422. Pure. */
export function readNewKind(
  deps: Deps,
  body: KindInput & { kind: 'oidc' | 'saml' },
): { columns: KindColumns; secret: string | null } {
  refuseOtherKind(body.kind, body)
  if (body.kind === 'saml')
    return { columns: { ...NO_COLUMNS, ...readNewSaml(body.saml, deps.callbackRules) }, secret: null }
  const { oidc } = body
  if (!oidc) throw invalidField('oidc', 'required', 'is required when kind is oidc')
  const { issuer = '', client_id: clientId = '', client_secret: secret = '' } = oidc
  checkIssuer(deps, issuer)
  const columns = {
    ...NO_COLUMNS,
    issuer,
    clientId,
    scopes: withOpenId(oidc.scopes ?? DEFAULT_SCOPES),
    groupsClaim: oidc.groups_claim ?? null,
    isEmailTrusted: oidc.is_email_trusted ?? false,
  }
  return { columns, secret }
}

/**
 * The columns of its kind that a request changes. The stored secret stays at its provider: another issuer needs a secret of
 * its own, so that a caller who may change a connection cannot have it sent elsewhere. Throws a 422. Pure.
 */
export function readKindChange(deps: Deps, before: ConnectionRecord, body: KindInput): ConnectionChange {
  refuseOtherKind(before.kind, body)
  const { oidc, saml } = body
  if (saml) return readSamlChange(saml, deps.callbackRules)
  if (!oidc) return {}
  if (oidc.issuer !== undefined && oidc.issuer !== before.issuer) {
    checkIssuer(deps, oidc.issuer)
    const remedy = 'is required with another issuer: the stored one is not sent there'
    if (oidc.client_secret === undefined)
      throw buildFieldProblem({
        path: 'oidc.client_secret',
        code: 'required',
        message: remedy,
        params: { other: 'issuer' },
      })
  }
  return {
    ...(oidc.issuer !== undefined && { issuer: oidc.issuer }),
    ...(oidc.client_id !== undefined && { clientId: oidc.client_id }),
    ...(oidc.scopes !== undefined && { scopes: withOpenId(oidc.scopes) }),
    ...(oidc.groups_claim !== undefined && { groupsClaim: oidc.groups_claim }),
    ...(oidc.is_email_trusted !== undefined && { isEmailTrusted: oidc.is_email_trusted }),
  }
}

function refuseOtherKind(kind: string, body: KindInput): void {
  for (const part of ['oidc', 'saml'] as const)
    if (body[part] !== undefined && part !== kind)
      throw invalidField(part, 'not_allowed', `is not accepted: the kind is ${kind}`)
}

/** The rules of callbacks, and those of OpenID Connect Discovery 1.0 section 3. Throws a 422 on `oidc.issuer`. */
function checkIssuer({ callbackRules }: Deps, issuer: string): void {
  const checked = checkCallbackUrl(issuer, callbackRules)
  if (!checked.ok)
    throw buildFieldProblem({
      path: 'oidc.issuer',
      code: checked.code,
      message: checked.message,
      params: checked.params,
    })
  if (/[?#]/.test(issuer))
    throw invalidField('oidc.issuer', 'url_invalid', 'is an issuer, so it has no query and no fragment')
}

const withOpenId = (scopes: readonly string[]) => ['openid', ...scopes.filter((scope) => scope !== 'openid')]
