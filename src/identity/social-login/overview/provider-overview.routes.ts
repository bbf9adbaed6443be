import { countEntrances } from '../../../event/recording/entrance-count.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { namedObject, TimestampSchema } from '../../../http/route/schema.ts'
import { type Static, Type } from '../../../http/shape/schema-type.ts'
import type { Engine } from '../../engine/engine.ts'
import type { RedirectRules } from '../../sign-in/outcome/redirect-url.ts'
import { buildProviderOverview, type ProviderOverview } from './provider-overview.ts'

const WINDOW_MS = 24 * 60 * 60_000

const ProviderSchema = namedObject('SignInProvider', {
  name: Type.String({ description: 'As in paths: `google`.' }),
  label: Type.String(),
  is_enabled: Type.Boolean(),
  is_managed: Type.Boolean({ description: 'Whether a managed engine speaks to it and keeps its credentials.' }),
  callback_url: Type.String({ description: 'To be registered at the provider.' }),
  missing_settings: Type.Array(Type.String(), {
    description: 'The settings that enable it; empty for an enabled one. Their values are never shown.',
  }),
  starts: Type.Integer(),
  successes: Type.Integer(),
  failures: Type.Array(namedObject('FailureCount', { reason: Type.String(), count: Type.Integer() }), {
    description: 'By reason, the most frequent first.',
  }),
})

const ProvidersSchema = namedObject('SignInProviders', {
  providers: Type.Array(ProviderSchema, { description: 'The enabled ones first.' }),
  counted_since: Type.Unsafe<string>({
    ...TimestampSchema,
    description: 'The start of the counts: 24 hours ago, or later where there were very many sign-ins.',
  }),
  redirect_allow_list: Type.Array(Type.String(), {
    description: '`AUTH_REDIRECT_ALLOW_LIST`: where a sign-in may end, origins and schemes of apps.',
  }),
  allows_loopback: Type.Boolean({ description: 'Whether a sign-in may end on this machine too: in development.' }),
})

function toProvider(overview: ProviderOverview): Static<typeof ProviderSchema> {
  return {
    name: overview.name,
    label: overview.label,
    is_enabled: overview.isEnabled,
    is_managed: overview.isManaged,
    callback_url: overview.callbackUrl,
    missing_settings: overview.missingSettings,
    starts: overview.starts,
    successes: overview.successes,
    failures: overview.failures,
  }
}

/** Dependencies of the overview of providers. */
export interface ProviderOverviewDeps {
  engine: Pick<Engine, 'listProviders'>
  baseUrl: () => string
  redirectRules: () => RedirectRules
}

/** The sign-in providers, for operators (docs/contract/social-login.md#overview-of-providers). */
export const providerOverviewRoutes: Routes<ProviderOverviewDeps> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/identity/provider',
      resource: 'sign-in-provider',
      action: 'find-all',
      accountScope: 'none',
      isExpensive: true,
      summary: 'List sign-in providers with their state',
      description:
        'The enabled providers, the missing settings of built-in providers, and the sign-ins of the last 24 hours.',
      data: ProvidersSchema,
    },
    async ({ engine, baseUrl, redirectRules }: ProviderOverviewDeps, { db, now }) => {
      const { counts, since } = await countEntrances(db, {
        actions: ['login.oauth-start', 'login.oauth-callback', 'login.oauth'],
        since: new Date(now.getTime() - WINDOW_MS),
      })
      const { allowList, allowLoopback } = redirectRules()
      const providers = buildProviderOverview({ enabled: engine.listProviders(), counts, baseUrl: baseUrl() })
      return {
        data: {
          providers: providers.map(toProvider),
          counted_since: since.toISOString(),
          redirect_allow_list: allowList.map(({ text }) => text),
          allows_loopback: allowLoopback,
        },
        message: 'Sign-in providers.',
      }
    },
  ),
]
