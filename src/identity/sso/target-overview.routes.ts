import { countEntrances } from '../../event/recording/entrance-count.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { enumSchema, namedObject, nullable, TimestampSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { HANDSHAKE_SECONDS, type HandshakeRules, LEEWAY_SECONDS } from './handshake-token.ts'
import { isSameSite } from './target.ts'

const WINDOW_MS = 24 * 60 * 60_000

const TargetsSchema = namedObject('HandshakeTargets', {
  targets: Type.Array(
    namedObject('HandshakeTarget', {
      origin: Type.String({ description: 'The audience of its tokens.' }),
      needs_handshake: Type.Boolean({
        description: 'False for an app on the site of the service: its browser has the session cookie already.',
      }),
    }),
    { description: '`SSO_TARGETS`.' },
  ),
  allows_loopback: Type.Boolean({ description: 'Whether every origin of this machine is a target: in development.' }),
  issuer: Type.String(),
  cookie_domain: nullable(Type.String({ description: '`SESSION_COOKIE_DOMAIN`.' })),
  accepts_session_jwt: Type.Boolean({ description: '`SSO_ACCEPT_SESSION_JWT`.' }),
  secret_count: Type.Integer({ description: 'How many handshake secrets verify; the first one signs.' }),
  token_seconds: Type.Integer({ description: 'Lifetime of a handshake token.' }),
  tolerance_seconds: Type.Integer({ description: 'Tolerance for the clock of an app.' }),
  outcomes: Type.Array(
    namedObject('ExchangeOutcome', {
      audience: nullable(Type.String({ description: 'Null where the token was no genuine one.' })),
      outcome: enumSchema(['success', 'failure']),
      reason: nullable(Type.String()),
      count: Type.Integer(),
    }),
    { description: 'The exchanges of 24 hours.' },
  ),
  counted_since: Type.Unsafe<string>({
    ...TimestampSchema,
    description: 'The start of the counts: 24 hours ago, or later where there were very many exchanges.',
  }),
})

/** The targets of handshakes, for operators (docs/contract/sso.md#overview-of-targets). */
export const targetOverviewRoutes: Routes<{ rules: HandshakeRules }> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/identity/handshake-target',
      resource: 'handshake-target',
      action: 'find-all',
      accountScope: 'none',
      isExpensive: true,
      summary: 'List handshake targets and the outcomes of exchanges',
      data: TargetsSchema,
    },
    async ({ rules }: { rules: HandshakeRules }, { db, now }) => {
      const since = new Date(now.getTime() - WINDOW_MS)
      const { counts, since: countedSince } = await countEntrances(db, { actions: ['sso.exchange'], since })
      return {
        data: {
          targets: rules.origins.map((origin) => ({ origin, needs_handshake: !isSameSite(new URL(origin), rules) })),
          allows_loopback: rules.allowLoopback,
          issuer: rules.issuer(),
          cookie_domain: rules.cookieDomain ?? null,
          accepts_session_jwt: rules.acceptSessionJwt,
          secret_count: rules.secrets.length,
          token_seconds: HANDSHAKE_SECONDS,
          tolerance_seconds: LEEWAY_SECONDS,
          outcomes: counts.map(({ audience, outcome, reason, count }) => ({ audience, outcome, reason, count })),
          counted_since: countedSince.toISOString(),
        },
        message: 'Handshake targets.',
      }
    },
  ),
]
