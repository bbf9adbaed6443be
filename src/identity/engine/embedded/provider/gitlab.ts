import { type ProviderDeclaration, readStandardClaims } from './provider-declaration.ts'

/** GitLab, by OpenID Connect; `SOCIAL_GITLAB_ISSUER` names a self-managed installation. */
export const gitlab: ProviderDeclaration = {
  label: 'GitLab',
  protocol: { kind: 'openid', issuer: 'https://gitlab.com' },
  scope: 'openid email profile',
  needs: ['secret'],
  readProfile: readStandardClaims,
}
