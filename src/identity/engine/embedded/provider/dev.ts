import { declareOpenId } from './generic-openid.ts'

/** The development provider, by OpenID Connect like any other; its issuer is a path of the service itself. */
export const dev = declareOpenId('a sample user', 'http://localhost/auth/dev')
