import type { Engine } from '../engine/engine.ts'
import { type Html, html } from '../pages/html.ts'
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
    icon: renderProviderIcon(name, label),
    href: `/api/v3/auth/login/oauth/${name}?${query}`,
  }))
}

/** The sign of a provider: its first letter, because its own mark is a trademark with rules of its own. */
export function renderProviderIcon(name: string, label: string): Html {
  if (name === 'dev') return PERSON
  const [first] = new Intl.Segmenter('en').segment(label)
  return html`<span class="initial" aria-hidden="true">${first?.segment.toLocaleUpperCase('en')}</span>`
}

const PERSON = html`<svg class="glyph" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><circle cx="12" cy="8" r="4"/><path d="M4.5 20.5a7.5 7.5 0 0 1 15 0"/></svg>`
