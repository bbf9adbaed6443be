import { type ProviderDeclaration, readStandardClaims } from './provider-declaration.ts'

/** An OpenID provider by its issuer, of standard claims, with what it has of its own. */
export const declareOpenId = (
  label: string,
  issuer: string,
  own: Partial<ProviderDeclaration> = {},
): ProviderDeclaration => ({
  label,
  protocol: { kind: 'openid', issuer },
  scope: 'openid email profile',
  needs: [],
  readProfile: readStandardClaims,
  ...own,
})
