/**
 * The methods of a sign-in (RFC 8176), and three of our own: `mail` for a link or code by mail, `fed` for a social
 * provider, `sso` for a session that a handshake opened (docs/contract/sessions.md#how-a-user-signed-in).
 */
export type AuthMethod = 'pwd' | 'otp' | 'hwk' | 'swk' | 'user' | 'mfa' | 'mail' | 'fed' | 'sso'

/** The assurance of a sign-in: `aal2` after a second factor, else `aal1` (NIST SP 800-63B section 4). Pure. */
export function rateMethods(methods: readonly string[]): 'aal1' | 'aal2' {
  return methods.includes('mfa') ? 'aal2' : 'aal1'
}
