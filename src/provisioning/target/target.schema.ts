import { enumSchema, named, namedObject, nullable, ROW_STAMPS, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'

const ProtocolSchema = named(
  'ProvisioningProtocol',
  enumSchema(['webhook', 'scim'], {
    description: '`webhook`: signed events are posted to the URL. `scim`: the users of a SCIM 2.0 service are changed.',
  }),
)
const UrlSchema = Type.String({
  minLength: 1,
  description:
    'HTTPS, a public host, at most 2048 characters. http:// only in development. Of a SCIM service its base, without /Users.',
})
const NameSchema = nullable(Type.String({ maxLength: 100 }))
const DescriptionSchema = nullable(Type.String({ maxLength: 500 }))
const TokenSchema = Type.String({
  minLength: 1,
  maxLength: 4096,
  pattern: '^[\\x21-\\x7e]+$',
  description: 'The bearer token of a SCIM service. Never shown again.',
})

/** The public row of a target (docs/contract/provisioning.md#targets). Never with its secret. */
const targetMembers = {
  document_id: UuidSchema,
  protocol: ProtocolSchema,
  url: Type.String(),
  name: nullable(Type.String()),
  description: nullable(Type.String()),
  is_actived: Type.Boolean({ description: 'While false, queued deliveries of the target wait.' }),
  ...ROW_STAMPS,
}
export const TargetRow = namedObject('ProvisioningTarget', targetMembers)

/** The answer to create and to rotate-secret: the only two that show the secret. */
export const TargetWithSecret = namedObject('ProvisioningTargetWithSecret', {
  ...targetMembers,
  secret: nullable(
    Type.String({ description: '`whsec_...`. Shown once; null in an idempotent replay, and of a SCIM service.' }),
  ),
})

export const CreateTargetBody = namedObject('CreateProvisioningTarget', {
  url: UrlSchema,
  protocol: Type.Optional(ProtocolSchema),
  name: Type.Optional(NameSchema),
  description: Type.Optional(DescriptionSchema),
  token: Type.Optional(TokenSchema),
})

export const UpdateTargetBody = namedObject(
  'UpdateProvisioningTarget',
  {
    url: Type.Optional(UrlSchema),
    name: Type.Optional(NameSchema),
    description: Type.Optional(DescriptionSchema),
    token: Type.Optional(TokenSchema),
  },
  { minProperties: 1 },
)
