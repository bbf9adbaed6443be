import type { Engine } from '../engine/engine.ts'
import { type Html, html } from '../pages/html.ts'
import type { ProviderButton } from '../pages/sign-in-page.ts'
import { MARKS } from './provider-marks.generated.ts'

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

/**
 * The sign of a provider: its own mark in one colour, which its guidelines allow, with the four colours of Google, which
 * its guidelines ask for; else its first letter. The name stands beside it.
 */
export function renderProviderIcon(name: string, label: string): Html {
  if (name === 'dev') return PERSON
  const mark = Object.hasOwn(MARKS, name) ? MARKS[name] : undefined
  if (mark !== undefined) return name === 'google' ? renderGoogle(mark) : renderMark(name, mark)
  const [first] = new Intl.Segmenter('en').segment(label)
  return html`<span class="initial" aria-hidden="true">${first?.segment.toLocaleUpperCase('en')}</span>`
}

/** Colours of marks that are not in the colour of text. */
const COLORED = ['discord', 'facebook', 'gitlab']

function renderMark(name: string, mark: string): Html {
  const color = COLORED.includes(name) ? name : 'plain'
  return html`<svg class="provider ${color}" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d="${mark}"/></svg>`
}

/** The parts of the mark in their colours, which meet in its middle. */
function renderGoogle(mark: string): Html {
  const clip = 'google-mark'
  return html`<svg class="provider" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><clipPath id="${clip}"><path d="${mark}"/></clipPath><g clip-path="url(#${clip})"><path fill="#ea4335" d="M0 0h24v10H12.4L0 4.6z"/><path fill="#fbbc05" d="M0 4.6 12.4 12 0 19.4z"/><path fill="#34a853" d="M0 19.4 12.4 12 24 23.2V24H0z"/><path fill="#4285f4" d="M12.4 10H24v13.2L12.4 12z"/></g></svg>`
}

const PERSON = html`<svg class="glyph" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><circle cx="12" cy="8" r="4"/><path d="M4.5 20.5a7.5 7.5 0 0 1 15 0"/></svg>`
