import { type ProviderDeclaration, readStandardClaims } from './provider-declaration.ts'

/** Any OpenID provider, by its issuer. `label` is the name of its settings, in words. */
export function declareOpenIdProvider(label: string, issuer: string): ProviderDeclaration {
  return {
    label,
    protocol: { kind: 'openid', issuer },
    scope: 'openid email profile',
    needs: [],
    readProfile: readStandardClaims,
  }
}
