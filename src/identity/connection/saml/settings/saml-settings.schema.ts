import { namedObject, nullable, TimestampSchema } from '../../../../http/route/schema.ts'
import { type Static, Type } from '../../../../http/shape/schema-type.ts'
import { CERTIFICATE_CHARACTERS, CERTIFICATE_LIMIT, readCertificate } from './idp-certificate.ts'
import type { SamlColumns } from './saml-settings.ts'
import { buildSamlUrls } from './saml-url.ts'

const AttributeSchema = nullable(
  Type.String({
    minLength: 1,
    maxLength: 256,
    pattern: '^[\\x21-\\x7e]+$',
    description: 'The `Name` of the attribute. Null: the usual ones.',
  }),
)

const EntityIdSchema = Type.String({
  minLength: 1,
  maxLength: 1024,
  pattern: '^[\\x21-\\x7e]+$',
  description: 'Entity id of the identity provider: the issuer of its assertions.',
})
const SsoUrlSchema = Type.String({
  minLength: 1,
  maxLength: 2048,
  pattern: '^[\\x21-\\x7e]+$',
  description: 'Its single sign-on URL for HTTP-Redirect: https. Only browsers open it.',
})
const CertificatesSchema = Type.Array(Type.String({ minLength: 1, maxLength: CERTIFICATE_CHARACTERS }), {
  minItems: 1,
  maxItems: CERTIFICATE_LIMIT,
  description:
    'Certificates that verify its signatures: X.509 in PEM, RSA of 2,048 to 8,192 bits. Replaced as a whole.',
})

const attributes = {
  email_attribute: Type.Optional(AttributeSchema),
  name_attribute: Type.Optional(AttributeSchema),
  groups_attribute: Type.Optional(AttributeSchema),
}

export const CreateSaml = namedObject('CreateSamlConnection', {
  idp_entity_id: EntityIdSchema,
  sso_url: SsoUrlSchema,
  certificates: CertificatesSchema,
  ...attributes,
})

export const UpdateSaml = namedObject('UpdateSamlConnection', {
  idp_entity_id: Type.Optional(EntityIdSchema),
  sso_url: Type.Optional(SsoUrlSchema),
  certificates: Type.Optional(CertificatesSchema),
  ...attributes,
})

const CertificateRow = namedObject('SamlCertificate', {
  pem: Type.String(),
  fingerprint: Type.String({ description: 'SHA-256, in hex.' }),
  not_before: TimestampSchema,
  not_after: Type.String({
    ...TimestampSchema,
    description: 'When the provider is due to change it. It verifies afterwards too.',
  }),
})

/** The part of a SAML provider, as the API shows it. */
export const SamlPart = namedObject('SamlConnection', {
  idp_entity_id: Type.String(),
  sso_url: Type.String(),
  certificates: Type.Array(CertificateRow),
  email_attribute: nullable(Type.String()),
  name_attribute: nullable(Type.String()),
  groups_attribute: nullable(Type.String()),
  metadata_path: Type.String({
    description: 'Behind `BASE_URL` the entity id of the service (audience), and its metadata for the provider.',
  }),
  acs_path: Type.String({ description: 'Behind `BASE_URL` the assertion consumer service, to which answers go.' }),
})

const METADATA_CHARACTERS = 131_072

export const ReadMetadataBody = namedObject('ReadSamlMetadata', {
  metadata: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: METADATA_CHARACTERS,
      description: 'The metadata of the identity provider, XML. This, or `metadata_url`.',
    }),
  ),
  metadata_url: Type.Optional(
    Type.String({ minLength: 1, maxLength: 2048, description: 'The URL from which it is read once: https.' }),
  ),
})

/** The settings in the metadata of a provider. */
export const MetadataRow = namedObject('SamlMetadata', {
  idp_entity_id: Type.String(),
  sso_url: Type.String(),
  certificates: Type.Array(CertificateRow),
  wants_signed_requests: Type.Boolean({
    description:
      'Whether the provider asks for signed requests. The service signs none: switch that off at the provider.',
  }),
})

/** Maps certificates for the wire. */
export function toCertificateRows(certificates: readonly string[]): Static<typeof CertificateRow>[] {
  return certificates.flatMap((text) => {
    const read = readCertificate(text)
    if ('code' in read) return []
    const { pem, fingerprint, notBefore, notAfter } = read
    return [{ pem, fingerprint, not_before: notBefore.toISOString(), not_after: notAfter.toISOString() }]
  })
}

/** Maps the columns of a SAML connection for the wire. */
export function toSamlPart(
  connection: string,
  columns: Omit<SamlColumns, 'certificatesEndAt'>,
): Static<typeof SamlPart> {
  const urls = buildSamlUrls('', connection)
  return {
    idp_entity_id: columns.issuer,
    sso_url: columns.ssoUrl,
    certificates: toCertificateRows(columns.certificates),
    email_attribute: columns.emailAttribute,
    name_attribute: columns.nameAttribute,
    groups_attribute: columns.groupsClaim,
    metadata_path: urls.entityId,
    acs_path: urls.acsUrl,
  }
}
