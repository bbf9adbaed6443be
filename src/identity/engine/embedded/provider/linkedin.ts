import { type ProviderDeclaration, readStandardClaims } from './provider-declaration.ts'

/**
 * LinkedIn, by OpenID Connect. It answers `invalid_client` to a `code_verifier` unless the app is registered for native
 * PKCE, and its ID tokens have no nonce. The client secret, the bound `state` and the callback of its own remain.
 */
export const linkedin: ProviderDeclaration = {
  label: 'LinkedIn',
  protocol: { kind: 'openid', issuer: 'https://www.linkedin.com/oauth' },
  scope: 'openid profile email',
  hasPkce: false,
  hasNonce: false,
  needs: ['secret'],
  readProfile: readStandardClaims,
}
