import { enumSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { wireOf } from '../../http/shape/wire-row.ts'
import { MAX_REDIRECT_URL_LENGTH } from '../sign-in/outcome/redirect-url.ts'
import { identity } from './user/identity.store.ts'

/**
 * Longest parameters of a callback, in characters; all of them together fit into the 16 KiB of a request. Codes of
 * Microsoft have more than 1,000, a session JWT some 600, and an issuer is a URL.
 */
const LIMITS = { state: 512, iss: 2048, error: 256, description: 2048, credential: 4096, refreshToken: 1024 }

const parameter = (limit: keyof typeof LIMITS, description: string) =>
  Type.Optional(Type.String({ maxLength: LIMITS[limit], description }))

/** The path parameter of a provider. Any text that the router takes: an unknown name is a 404. */
export const ProviderParams = Type.Object({
  provider: Type.String({ maxLength: 256, description: 'The name of the provider: `google`.' }),
})

const CodeChallenge = Type.String({
  pattern: '^[A-Za-z0-9_-]{43}$',
  minLength: 43,
  maxLength: 43,
  description: 'For a deep link: answers a one-time code in place of tokens (RFC 7636).',
})

/** The query of a start. */
export const StartQuery = Type.Object({
  redirect_url: Type.String({
    minLength: 1,
    maxLength: MAX_REDIRECT_URL_LENGTH,
    description: 'Where the user continues afterwards.',
  }),
  format: Type.Optional(enumSchema(['json'], { description: 'Answers JSON in place of a redirect.' })),
  code_challenge: Type.Optional(CodeChallenge),
  code_challenge_method: Type.Optional(enumSchema(['S256'])),
})

/** The answer of a start as JSON. The name of its member is that of the interface. */
export const FlowStart = namedObject('OAuthStart', {
  redirectUrl: Type.String({ format: 'uri', description: 'The address of the provider.' }),
})

/** Parameters that providers and engines send to a callback; each adds parameters of its own, which are ignored. */
export const CallbackQuery = Type.Object(
  {
    state: parameter('state', 'As it was sent to the provider.'),
    code: parameter('credential', 'The authorization code.'),
    iss: parameter('iss', 'The issuer (RFC 9207).'),
    error: parameter('error', 'The error of the provider (RFC 6749 section 4.1.2.1).'),
    error_code: parameter('error', 'The more exact error of a managed engine.'),
    error_description: parameter('description', 'The text of the error, which is not shown.'),
    access_token: parameter('credential', 'Of an engine that answers with tokens.'),
    refresh_token: parameter('refreshToken', 'Of an engine that answers with tokens.'),
  },
  { additionalProperties: true },
)

/** The form that a provider posts: Apple. */
export const CallbackForm = namedObject(
  'ProviderCallback',
  {
    state: parameter('state', 'As it was sent to the provider.'),
    code: parameter('credential', 'The authorization code.'),
    iss: parameter('iss', 'The issuer (RFC 9207).'),
    error: parameter('error', 'The error of the provider.'),
    user: parameter('credential', 'The name of the user as JSON, at the first sign-in only.'),
  },
  { additionalProperties: true },
)

/** The body of the exchange of a one-time code. */
export const ExchangeCodeBody = namedObject('ExchangeLoginCode', {
  code: Type.String({ minLength: 1, maxLength: 200, description: 'The `code` of the deep link.' }),
  code_verifier: Type.String({
    minLength: 43,
    maxLength: 128,
    pattern: '^[A-Za-z0-9._~-]{43,128}$',
    description: 'What the `code_challenge` of the start is the SHA-256 of.',
  }),
})

/** The body of the start of a connection. */
export const LinkBody = namedObject('StartIdentityLink', {
  redirect_url: Type.String({
    minLength: 1,
    maxLength: MAX_REDIRECT_URL_LENGTH,
    description: 'Gets `link_code` in its query.',
  }),
})

/** The body that completes a connection. */
export const CreateIdentityBody = namedObject('CreateIdentity', {
  code: Type.String({ minLength: 1, maxLength: 200, description: 'The `link_code` of the redirect_url.' }),
})

/** An identity as its user sees it. The subject is not shown: it names the user at the provider. */
export const IdentityRow = namedObject('Identity', {
  document_id: UuidSchema,
  provider: Type.String(),
  email: nullable(Type.String()),
  is_email_verified: Type.Boolean(),
  name: nullable(Type.String()),
  avatar_url: nullable(Type.String()),
  last_login_at: nullable(TimestampSchema),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

/** Maps an identity for the wire. */
export const toIdentityRow = wireOf(identity, IdentityRow)
