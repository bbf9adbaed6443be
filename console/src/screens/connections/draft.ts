import type { Schemas } from '@signalbox/client'

/** A connection as the API shows it. */
export type Connection = Schemas['Connection']

/** Kind of a connection. */
export type Kind = Connection['kind']

/** A group of the provider, and the role that it gives. */
export type GroupRole = Schemas['ConnectionGroupRole']

/** The fields of a connection of either kind, as its forms have them; an empty text is none. */
export interface ConnectionFields {
  name: string
  isJit: boolean
  defaultRole: string
  groupRoles: readonly GroupRole[]
  /** Hours; empty for the default. */
  sessionHours: number | ''
  issuer: string
  clientId: string
  clientSecret: string
  scopes: readonly string[]
  groupsClaim: string
  isEmailTrusted: boolean
  entityId: string
  ssoUrl: string
  /** Certificates in PEM, one behind the other. */
  certificates: string
  emailAttribute: string
  nameAttribute: string
  groupsAttribute: string
}

/** The fields of a new connection, with the defaults of the API. */
export const EMPTY: ConnectionFields = {
  name: '',
  isJit: false,
  defaultRole: '',
  groupRoles: [],
  sessionHours: 24,
  issuer: '',
  clientId: '',
  clientSecret: '',
  scopes: ['openid', 'email', 'profile'],
  groupsClaim: '',
  isEmailTrusted: false,
  entityId: '',
  ssoUrl: '',
  certificates: '',
  emailAttribute: '',
  nameAttribute: '',
  groupsAttribute: '',
}

/** A connection as the fields have it. Pure. */
export function fieldsOf(row: Connection): ConnectionFields {
  const { oidc, saml } = row
  return {
    ...EMPTY,
    name: row.name,
    isJit: row.is_jit,
    defaultRole: row.default_role ?? '',
    groupRoles: row.group_roles,
    sessionHours: row.session_hours,
    ...(oidc && {
      issuer: oidc.issuer,
      clientId: oidc.client_id,
      scopes: oidc.scopes,
      groupsClaim: oidc.groups_claim ?? '',
      isEmailTrusted: oidc.is_email_trusted,
    }),
    ...(saml && {
      entityId: saml.idp_entity_id,
      ssoUrl: saml.sso_url,
      certificates: saml.certificates.map(({ pem }) => pem.trim()).join('\n'),
      emailAttribute: saml.email_attribute ?? '',
      nameAttribute: saml.name_attribute ?? '',
      groupsAttribute: saml.groups_attribute ?? '',
    }),
  }
}

const END = '-----END CERTIFICATE-----'

/** The certificates of a text, one behind the other; what is none is left to the API to refuse. Pure. */
export function splitCertificates(text: string): string[] {
  const parts = text.split(END)
  return parts.map((part, at) => (at < parts.length - 1 ? `${part}${END}` : part).trim()).filter((part) => part !== '')
}

/** The settings of every kind, of those fields that are given. Pure. */
function toSettings({ isJit, defaultRole, groupRoles, sessionHours }: Partial<ConnectionFields>) {
  return {
    ...(isJit !== undefined && { is_jit: isJit }),
    ...(defaultRole !== undefined && { default_role: defaultRole || null }),
    ...(groupRoles && { group_roles: groupRoles.map(({ group, role }) => ({ group: group.trim(), role })) }),
    ...(typeof sessionHours === 'number' && { session_hours: sessionHours }),
  }
}

/** The part of an OpenID provider, of those fields that are given. Pure. */
function toOidc(fields: Partial<ConnectionFields>) {
  const { issuer, clientId, clientSecret, scopes, groupsClaim, isEmailTrusted } = fields
  return {
    ...(issuer !== undefined && { issuer: issuer.trim() }),
    ...(clientId !== undefined && { client_id: clientId.trim() }),
    ...(clientSecret && { client_secret: clientSecret }),
    ...(scopes && { scopes: [...scopes] }),
    ...(groupsClaim !== undefined && { groups_claim: groupsClaim.trim() || null }),
    ...(isEmailTrusted !== undefined && { is_email_trusted: isEmailTrusted }),
  }
}

/** The part of a SAML provider, of those fields that are given. Pure. */
function toSaml(fields: Partial<ConnectionFields>) {
  const { entityId, ssoUrl, certificates, emailAttribute, nameAttribute, groupsAttribute } = fields
  return {
    ...(entityId !== undefined && { idp_entity_id: entityId.trim() }),
    ...(ssoUrl !== undefined && { sso_url: ssoUrl.trim() }),
    ...(certificates !== undefined && { certificates: splitCertificates(certificates) }),
    ...(emailAttribute !== undefined && { email_attribute: emailAttribute.trim() || null }),
    ...(nameAttribute !== undefined && { name_attribute: nameAttribute.trim() || null }),
    ...(groupsAttribute !== undefined && { groups_attribute: groupsAttribute.trim() || null }),
  }
}

/** A new connection as the API takes it. Pure. */
export function toCreateBody(kind: Kind, fields: ConnectionFields): Schemas['CreateConnection'] {
  const { issuer, clientId, clientSecret, entityId, ssoUrl, certificates } = fields
  return {
    kind,
    name: fields.name.trim(),
    ...toSettings(fields),
    ...(kind === 'oidc'
      ? { oidc: { ...toOidc(fields), issuer: issuer.trim(), client_id: clientId.trim(), client_secret: clientSecret } }
      : {
          saml: {
            ...toSaml(fields),
            idp_entity_id: entityId.trim(),
            sso_url: ssoUrl.trim(),
            certificates: splitCertificates(certificates),
          },
        }),
  }
}

/** The change of these fields as the API takes it. Pure. */
export function toUpdateBody(changed: Partial<ConnectionFields>): Schemas['UpdateConnection'] {
  const [oidc, saml] = [toOidc(changed), toSaml(changed)]
  return {
    ...(changed.name !== undefined && { name: changed.name.trim() }),
    ...toSettings(changed),
    ...(Object.keys(oidc).length > 0 && { oidc }),
    ...(Object.keys(saml).length > 0 && { saml }),
  }
}
