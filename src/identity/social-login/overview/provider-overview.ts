import type { EntranceCount } from '../../../event/recording/entrance-count.ts'
import { listBuiltInProviders } from '../../engine/embedded/built-in-providers.ts'
import type { EngineProvider } from '../../engine/engine.ts'
import { buildCallbackUrl } from '../social-login.ts'

/** A provider with its state and the results of its sign-ins. */
export interface ProviderOverview {
  name: string
  label: string
  isEnabled: boolean
  /** Whether a managed engine connects to it and keeps its credentials. */
  isManaged: boolean
  /** To be registered at the provider. With a managed engine, the address of this service that the engine returns to. */
  callbackUrl: string
  /** The names of the settings that enable it; empty for an enabled one. */
  missingSettings: string[]
  starts: number
  successes: number
  failures: { reason: string; count: number }[]
}

/** The providers that are enabled, then the built-in ones that are not. Pure. */
export function buildProviderOverview(input: {
  enabled: readonly EngineProvider[]
  counts: readonly EntranceCount[]
  baseUrl: string
}): ProviderOverview[] {
  const { enabled, counts, baseUrl } = input
  const others = listBuiltInProviders().filter(({ name }) => !enabled.some((item) => item.name === name))
  const build = (
    name: string,
  ): Pick<ProviderOverview, 'name' | 'callbackUrl' | 'starts' | 'successes' | 'failures'> => ({
    name,
    callbackUrl: buildCallbackUrl(baseUrl, name),
    ...summarize(counts.filter(({ provider }) => provider === name)),
  })
  return [
    ...enabled.map(({ name, label, leavesToken }) => ({
      ...build(name),
      label,
      isEnabled: true,
      isManaged: leavesToken,
      missingSettings: [],
    })),
    ...others.map(({ name, label, settings }) => ({
      ...build(name),
      label,
      isEnabled: false,
      isManaged: false,
      missingSettings: settings,
    })),
  ]
}

/** Starts, successes and failures by reason, the most frequent first. A failed start is no start. */
function summarize(counts: readonly EntranceCount[]): Pick<ProviderOverview, 'starts' | 'successes' | 'failures'> {
  const sum = (pick: (entrance: EntranceCount) => boolean) =>
    counts.filter(pick).reduce((total, { count }) => total + count, 0)
  const failed = counts.filter(({ outcome }) => outcome === 'failure')
  const reasons = [...new Set(failed.map(({ reason }) => reason ?? 'unknown'))]
  const failures = reasons.map((reason) => ({
    reason,
    count: sum((entrance) => entrance.outcome === 'failure' && (entrance.reason ?? 'unknown') === reason),
  }))
  return {
    starts: sum(({ action, outcome }) => action === 'login.oauth-start' && outcome === 'success'),
    successes: sum(({ action, outcome }) => action === 'login.oauth' && outcome === 'success'),
    failures: failures.sort((a, b) => b.count - a.count || (a.reason < b.reason ? -1 : 1)),
  }
}
