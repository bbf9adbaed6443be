import { named, namedObject } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import type { Exchanged } from './exchange.ts'
import { ACCESS_TOKEN_TYPE } from './token-exchange-form.ts'

const field = (description: string) => Type.Optional(Type.Unknown({ description }))

/** The body, in JSON or as a form. Open, since a form that breaks a rule is answered by the rules of RFC 8693. */
export const ExchangeBody = namedObject(
  'ExchangeAccessToken',
  {
    token: field('In JSON, alone and required: the access token that the app got from the token endpoint.'),
    grant_type: field('In the form: `urn:ietf:params:oauth:grant-type:token-exchange`.'),
    subject_token: field('In the form: the access token.'),
    subject_token_type: field(`In the form: \`${ACCESS_TOKEN_TYPE}\`.`),
    requested_token_type: field('In the form, optional: the same.'),
    resource: field('In the form, optional: the address of the API.'),
    audience: field('In the form, optional: the same.'),
    scope: field('In the form, optional: names of scopes, when the JWT is to have less than the token.'),
    client_id: field('In the form, optional: the app, which must be that of the token.'),
  },
  { additionalProperties: true },
)

const JwtAnswer = namedObject('ExchangedAccessToken', {
  jwt: Type.String({ description: 'The session JWT of the app, to send as a bearer token.' }),
  token_type: Type.Literal('Bearer'),
  expires_in: Type.Integer({ description: 'Lifetime of the JWT in seconds, from now.' }),
})

const TokenExchangeAnswer = namedObject('TokenExchange', {
  access_token: Type.String({ description: 'The session JWT of the app, to send as a bearer token.' }),
  issued_token_type: Type.Literal(ACCESS_TOKEN_TYPE),
  token_type: Type.Literal('Bearer'),
  expires_in: Type.Integer({ description: 'Lifetime of the JWT in seconds, from now.' }),
  scope: Type.String({ description: 'What the JWT may do at most.' }),
})

/** The bare answer of an exchange: of the JSON body, or of the form (RFC 8693 section 2.2.1). */
export const ExchangeAnswer = named('ExchangeAnswer', Type.Union([JwtAnswer, TokenExchangeAnswer]))

/** Maps an exchange for the wire. */
export function toExchangeAnswer({ issued, scope }: Exchanged, isForm: boolean): Static<typeof ExchangeAnswer> {
  const facts = { token_type: 'Bearer', expires_in: issued.expiresInSeconds } as const
  return isForm
    ? { access_token: issued.jwt, issued_token_type: ACCESS_TOKEN_TYPE, ...facts, scope }
    : { jwt: issued.jwt, ...facts }
}
