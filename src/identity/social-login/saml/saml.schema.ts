import { namedObject, UuidSchema } from '../../../http/route/schema.ts'
import { Type } from '../../../http/shape/schema-type.ts'
import { RESPONSE_LIMIT } from '../../connection/saml/response/verify-response.ts'

export const SamlParams = Type.Object({ connection: UuidSchema })

/** Longest `RelayState` that is accepted. The service sends none, and some providers add one. */
const RELAY_STATE_LIMIT = 2_048

export const AcsForm = namedObject('PostSamlResponse', {
  SAMLResponse: Type.String({ minLength: 1, maxLength: RESPONSE_LIMIT, description: 'The response, in base64.' }),
  RelayState: Type.Optional(Type.String({ maxLength: RELAY_STATE_LIMIT, description: 'Ignored.' })),
})
