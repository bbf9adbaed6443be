import type { Engine } from '../engine/engine.ts'
import type { ProviderButton } from '../pages/sign-in-page.ts'

/**
 * The buttons of the enabled providers for the sign-in page: each begins a sign-in that ends at `redirectUrl`, or at the
 * page `next` of the service.
 */
export function listProviderButtons(
  engine: Pick<Engine, 'listProviders'>,
  goal: { redirectUrl: string | undefined; next: string | undefined; baseUrl: string },
): ProviderButton[] {
  const redirectUrl = goal.redirectUrl ?? `${goal.baseUrl}${goal.next ?? '/auth/'}`
  const query = new URLSearchParams({ redirect_url: redirectUrl })
  return engine.listProviders().map(({ name, label }) => ({
    label,
    href: `/api/v3/auth/login/oauth/${name}?${query}`,
  }))
}
