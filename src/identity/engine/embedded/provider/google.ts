import { type ProviderDeclaration, readStandardClaims } from './provider-declaration.ts'

/** Google, by OpenID Connect. */
export const google: ProviderDeclaration = {
  label: 'Google',
  protocol: { kind: 'openid', issuer: 'https://accounts.google.com' },
  scope: 'openid email profile',
  // A user with several accounts chooses; Google would take the one that is signed in.
  parameters: { prompt: 'select_account' },
  needs: ['secret'],
  readProfile: readStandardClaims,
}
