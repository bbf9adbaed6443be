/** The secrets of the service in tests. */
export const TEST_SECRETS = {
  secretKey: ['test-secret-key-of-at-least-32-bytes'],
  sessionJwt: ['test-session-secret-of-at-least-32-bytes'],
  ssoHandshake: ['test-handshake-secret-of-at-least-32-bytes'],
  oauthHook: ['test-hook-secret-of-at-least-32-bytes'],
}

/** The token for `/metrics` in tests. */
export const TEST_METRICS_TOKEN = 'test-token-of-metrics'

/** `TEST_SECRETS` as variables of the environment. */
export function buildSecretEnvironment(): Record<string, string> {
  return {
    SECRET_KEY: TEST_SECRETS.secretKey.join(','),
    SESSION_JWT_SECRET: TEST_SECRETS.sessionJwt.join(','),
    SSO_HANDSHAKE_SECRET: TEST_SECRETS.ssoHandshake.join(','),
    OAUTH_HOOK_SECRET: TEST_SECRETS.oauthHook.join(','),
  }
}
