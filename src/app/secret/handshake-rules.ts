import type { HandshakeRules } from '../../identity/sso/handshake-token.ts'
import type { Config, ServiceSecrets } from '../config/config.ts'

/** The rules of handshakes from the settings (docs/contract/sso.md#targets). */
export function buildHandshakeRules(
  { config, secrets }: { config: Config; secrets: ServiceSecrets },
  baseUrl: () => string,
): HandshakeRules {
  return {
    secrets: secrets.ssoHandshake,
    issuer: () => config.ssoHandshakeIssuer ?? baseUrl(),
    baseUrl,
    cookieDomain: config.sessionCookieDomain,
    origins: config.ssoTargets,
    allowLoopback: config.appEnv === 'development',
    acceptSessionJwt: config.ssoAcceptSessionJwt,
  }
}
