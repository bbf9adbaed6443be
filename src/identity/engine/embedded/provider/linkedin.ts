import { declareOpenId } from './generic-openid.ts'

/**
 * LinkedIn, by OpenID Connect. It answers `invalid_client` to a `code_verifier` unless the app is registered for native
 * PKCE, and its ID tokens have no nonce. The client secret, the bound `state` and the callback of its own remain.
 */
export const linkedin = declareOpenId('LinkedIn', 'https://www.linkedin.com/oauth', {
  scope: 'openid profile email',
  hasPkce: false,
  hasNonce: false,
  needs: ['secret'],
})
