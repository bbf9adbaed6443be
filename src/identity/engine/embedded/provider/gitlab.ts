import { declareOpenId } from './generic-openid.ts'

/** GitLab, by OpenID Connect; `SOCIAL_GITLAB_ISSUER` names a self-managed installation. */
export const gitlab = declareOpenId('GitLab', 'https://gitlab.com', { needs: ['secret'] })
