import { type ProviderDeclaration, readStandardClaims } from './provider-declaration.ts'

/** The development provider, by OpenID Connect like any other; its issuer is a path of the service itself. */
export const dev: ProviderDeclaration = {
  label: 'a sample user',
  protocol: { kind: 'openid', issuer: 'http://localhost/auth/dev' },
  scope: 'openid email profile',
  needs: [],
  readProfile: readStandardClaims,
}
