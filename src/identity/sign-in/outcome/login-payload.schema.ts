import { namedObject, nullable } from '../../../http/route/schema.ts'
import { type Static, Type } from '../../../http/shape/schema-type.ts'
import {
  AccountNameRow,
  RefreshedTokens,
  SessionUserRow,
  toAccountNameRow,
  toSessionUserRow,
} from '../../session/session.schema.ts'
import type { SignIn } from './sign-in.ts'

/** The answer of every sign-in (docs/contract/sessions.md#login-payload). */
export const LoginPayload = namedObject('LoginPayload', {
  ...RefreshedTokens.properties,
  user: SessionUserRow,
  account: nullable(AccountNameRow),
  is_new_user: Type.Boolean(),
  redirect_url: nullable(Type.String()),
})

/** Maps a sign-in for the wire. */
export function toLoginPayload({ user, issued, isNewUser, redirectUrl }: SignIn): Static<typeof LoginPayload> {
  return {
    jwt: issued.jwt,
    token_type: 'Bearer',
    expires_in: issued.expiresInSeconds,
    refresh_token: issued.refreshToken,
    user: toSessionUserRow(user),
    account: issued.account && toAccountNameRow(issued.account),
    is_new_user: isNewUser,
    redirect_url: redirectUrl,
  }
}
