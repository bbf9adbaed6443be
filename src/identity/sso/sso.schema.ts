import { namedObject, nullable } from '../../http/route/schema.ts'
import { type Static, Type } from '../../http/shape/schema-type.ts'
import type { StartedHandshake } from './handshake.ts'
import { NEXT_LENGTH_LIMIT } from './next-path.ts'
import { TARGET_LENGTH_LIMIT } from './target.ts'

export const StartHandshakeBody = namedObject('StartHandshake', {
  target_url: Type.String({
    minLength: 1,
    maxLength: TARGET_LENGTH_LIMIT,
    description: 'Where the target app takes the token. Its origin is one of `SSO_TARGETS`.',
  }),
  next: Type.Optional(
    Type.String({
      maxLength: NEXT_LENGTH_LIMIT,
      description: 'Path and query on the target, where the app continues. It begins with one slash.',
    }),
  ),
})

/** URL at which the browser continues (docs/contract/sso.md#handshake). */
export const HandshakeRow = namedObject('Handshake', {
  redirect_url: Type.String({ description: 'Send the browser here.' }),
  cross_domain: Type.Boolean({ description: 'Whether `redirect_url` holds a handshake token.' }),
  expires_in: nullable(Type.Integer({ description: 'Lifetime of the token in seconds; null without one.' })),
})

export const ExchangeBody = namedObject(
  'ExchangeHandshake',
  // Without limits of its own: every text other than a valid token gets the same answer.
  { token: Type.String({ description: 'The value of `sso_token`.' }) },
)

/** The bare answer of an exchange (docs/contract/sso.md#exchange). */
export const ExchangedSession = namedObject('ExchangedSession', {
  jwt: Type.String({ description: 'The JWT of a new session.' }),
})

/** Maps a started handshake for the wire. */
export function toHandshakeRow(started: StartedHandshake): Static<typeof HandshakeRow> {
  return {
    redirect_url: started.redirectUrl,
    cross_domain: started.isCrossDomain,
    expires_in: started.expiresInSeconds,
  }
}
