/**
 * Tests outside of its own folder that judge the code of a folder, as parts of their paths. The tests in the folder itself
 * always do.
 */
const JUDGES: Readonly<Record<string, readonly string[]>> = {
  'src/delivery': ['src/webhook/delivery/', 'src/webhook/replay/', 'src/event/recording/publication-batch.test.ts'],
  'src/oauth': ['test/conformance/openid-'],
  'src/webhook': [
    'test/contract/webhook.test.ts',
    'test/contract/webhook-headers.test.ts',
    'test/contract/subscription.test.ts',
    'test/contract/ledger.test.ts',
    'test/operations/cell-mails.test.ts',
  ],
}

/** The patterns of the tests that judge these paths. */
export function listTestPatterns(paths: readonly string[]): string[] {
  const folders = new Set(paths.map((path) => path.split('/').slice(0, 2).join('/')))
  return [...folders].flatMap((folder) => [`${folder}/`, ...(JUDGES[folder] ?? [])])
}

/**
 * Files of tests that judge a file, or those of a folder, before all but those beside it: they reach it over the API, which
 * neither its place nor its imports tell. The first entry that begins a path counts.
 */
export const NEAREST: readonly (readonly [prefix: string, tests: readonly string[]])[] = [
  [
    'src/identity/sign-in/second-factor/',
    ['src/identity/sign-in/step-up/step-up.test.ts', 'src/identity/sign-in/factor-race.test.ts'],
  ],
  [
    'src/identity/user/user.ts',
    ['src/identity/user-record/user.test.ts', 'src/identity/connection/entry/entry.test.ts'],
  ],
  [
    'src/identity/social-login/completion.ts',
    ['src/identity/connection/entry/entry.test.ts', 'src/identity/social-login/attack.test.ts'],
  ],
  [
    'src/identity/social-login/flow/login-code',
    ['src/identity/social-login/flow/login-code.test.ts', 'src/identity/social-login/identity/connection.test.ts'],
  ],
  ['src/identity/sign-in/passkey-login/', ['src/identity/sign-in/passkey/passkey.test.ts']],
  ['src/identity/sso/exchange.ts', ['src/identity/sso/session-attacks.slow.test.ts']],
  ['src/identity/account/invitation/', ['src/identity/account/invitation/invitation.slow.test.ts']],
  ['src/identity/account/account.ts', ['src/identity/access/takeover.test.ts']],
  [
    'src/webhook/delivery/settle.store.ts',
    ['src/webhook/ledger/replay.store.test.ts', 'src/webhook/delivery/settled-row.test.ts'],
  ],
  ['src/delivery/routing/routed-policies.ts', ['src/delivery/routing/inline-routing.test.ts']],
  ['src/delivery/job/job-move.ts', ['src/webhook/replay/replay-job.test.ts']],
  ['src/delivery/job/job-worker.ts', ['src/webhook/replay/replay-job.test.ts']],
  [
    'src/delivery/routing/routing.store.ts',
    ['src/webhook/delivery/fan-out.test.ts', 'src/event/recording/publication-batch.test.ts'],
  ],
  ['src/webhook/delivery/claim.store.ts', ['src/webhook/throttle/throttle.store.test.ts']],
  ['src/webhook/delivery/claimed-work.ts', ['src/webhook/delivery/routing.store.test.ts']],
  [
    'src/webhook/delivery/routing.store.ts',
    ['src/webhook/delivery/fan-out.test.ts', 'src/webhook/throttle/throttle-routing.test.ts'],
  ],
  ['src/webhook/delivery/webhook-policy.ts', ['src/webhook/throttle/late-claim.test.ts']],
  ['src/webhook/registry/', ['test/contract/webhook-headers.test.ts', 'test/contract/webhook.test.ts']],
  [
    'src/oauth/exchange/exchange.ts',
    [
      'src/oauth/token-attacks.slow.test.ts',
      'src/oauth/grant/engine-grant.slow.test.ts',
      'src/oauth/provider/ended-access.slow.test.ts',
    ],
  ],
  ['src/oauth/exchange/access-token.ts', ['src/oauth/token-attacks.slow.test.ts']],
  ['src/oauth/claims/', ['test/conformance/openid-claims.test.ts', 'src/oauth/hook/token-hook.test.ts']],
  [
    'src/oauth/client/client-metadata.ts',
    ['src/oauth/client/client-proof.slow.test.ts', 'test/conformance/openid-logout-plans.test.ts'],
  ],
  ['src/oauth/client/client-logo', ['src/oauth/grant/app.slow.test.ts']],
  [
    'src/oauth/consent/consent.ts',
    ['src/oauth/redirect-consent.slow.test.ts', 'src/oauth/consent/consent-race.test.ts'],
  ],
  ['src/oauth/consent/interaction.store.ts', ['src/oauth/consent/sign-in-app.test.ts']],
  ['src/oauth/engine-consent/', ['src/oauth/supabase-oauth.slow.test.ts']],
  ['src/oauth/grant/engine-grant.store.ts', ['src/oauth/grant/engine-grant.slow.test.ts']],
  [
    'src/oauth/provider/provider-mount.ts',
    ['src/oauth/provider/state/stranger.slow.test.ts', 'test/conformance/openid-basic-plan.test.ts'],
  ],
  ['src/oauth/provider/state/state-reader.ts', ['src/oauth/provider/round-trips.slow.test.ts']],
  ['src/oauth/provider/provider-source.ts', ['src/oauth/provider/round-trips.slow.test.ts']],
  [
    'src/oauth/provider/configuration.ts',
    ['test/conformance/openid-claims.test.ts', 'test/conformance/openid-logout-plans.test.ts'],
  ],
  ['src/oauth/provider/token-family/', ['src/oauth/redirect-consent.slow.test.ts']],
  ['src/oauth/provider/state/session-bridge.ts', ['test/conformance/openid-claims.test.ts']],
  ['src/oauth/provider/', ['src/oauth/provider/tokens.slow.test.ts', 'src/oauth/provider/extensions.slow.test.ts']],
]

/** The files of tests that are named to judge this path first. */
export function listNearest(path: string): readonly string[] {
  return NEAREST.find(([prefix]) => path.startsWith(prefix))?.[1] ?? []
}
