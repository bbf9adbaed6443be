import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { Engine, EngineProvider } from '../../engine/engine.ts'
import type { ProviderButton, ProviderWish } from '../../pages/sign-in/sign-in-goal.ts'
import { MARKS } from './provider-marks.generated.ts'

/** The providers whose guidelines ask for these words (docs/contract/pages.md#provider-buttons). */
const SIGN_IN_WITH: ReadonlySet<string> = new Set(['linkedin', 'microsoft'])

/** The providers whose guidelines ask for colours of the button. */
const LOOKS: ReadonlySet<string> = new Set(['apple', 'google', 'microsoft'])

/** The buttons of the enabled providers: each begins a sign-in that ends at `redirectUrl`, or at the page `next`. */
export function listProviderButtons(
  engine: Pick<Engine, 'listProviders'>,
  wish: ProviderWish & { baseUrl: string },
): ProviderButton[] {
  const { texts, isForDecision = false } = wish
  const redirectUrl = wish.redirectUrl ?? `${wish.baseUrl}${wish.next ?? '/auth/'}`
  const query = new URLSearchParams({ redirect_url: redirectUrl })
  const providers = engine.listProviders().filter(({ leavesToken }) => leavesToken || !isForDecision)
  return providers.map(({ name, label }) => ({
    text: texts.say(SIGN_IN_WITH.has(name) ? 'sign-in.in-with' : 'sign-in.with', {
      provider: nameProvider(texts, { name, label }),
    }),
    icon: renderProviderIcon(name, label),
    look: LOOKS.has(name) ? name : undefined,
    href: `/api/v3/auth/login/oauth/${name}?${query}`,
  }))
}

/** Display name of a provider, in a sentence. */
export function nameProvider(texts: Texts, { name, label }: Pick<EngineProvider, 'name' | 'label'>): string {
  return name === 'dev' ? texts.say('sample.provider') : label
}

/** Display name of a provider, in a list. */
export function titleProvider(texts: Texts, { name, label }: Pick<EngineProvider, 'name' | 'label'>): string {
  return name === 'dev' ? texts.say('sample.provider-title') : label
}

/** The mark of a provider as its guidelines allow (docs/contract/pages.md#provider-buttons), else its first letter. */
export function renderProviderIcon(name: string, label: string): Html {
  if (name === 'dev') return PERSON
  if (name === 'microsoft') return MICROSOFT
  const mark = Object.hasOwn(MARKS, name) ? MARKS[name] : undefined
  if (mark !== undefined) return name === 'google' ? renderGoogle(mark) : renderMark(name, mark)
  const [first] = new Intl.Segmenter('en').segment(label)
  return html`<span class="initial" aria-hidden="true">${first?.segment.toLocaleUpperCase('en')}</span>`
}

/** Colours of marks that are not in the colour of text. */
const COLORED = ['discord', 'facebook']

function renderMark(name: string, mark: string): Html {
  const color = COLORED.includes(name) ? name : 'plain'
  // The letter of Facebook is white on every ground, and a hole in the mark.
  const fixture = name === 'facebook' && html`<circle cx="12" cy="12" r="11" fill="#fff"/>`
  return html`<svg class="provider ${color}" viewBox="0 0 24 24" aria-hidden="true" focusable="false">${fixture}<path d="${mark}"/></svg>`
}

/** Four squares in their colours, which free collections do not hold. */
const MICROSOFT = html`<svg class="provider" viewBox="0 0 21 21" aria-hidden="true" focusable="false"><path fill="#f25022" d="M0 0h10v10H0z"/><path fill="#7fba00" d="M11 0h10v10H11z"/><path fill="#00a4ef" d="M0 11h10v10H0z"/><path fill="#ffb900" d="M11 11h10v10H11z"/></svg>`

/** The parts of the mark in their colours, which meet in its middle. */
function renderGoogle(mark: string): Html {
  const clip = 'google-mark'
  return html`<svg class="provider" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><clipPath id="${clip}"><path d="${mark}"/></clipPath><g clip-path="url(#${clip})"><path fill="#ea4335" d="M0 0h24v10H12.4L0 4.6z"/><path fill="#fbbc05" d="M0 4.6 12.4 12 0 19.4z"/><path fill="#34a853" d="M0 19.4 12.4 12 24 23.2V24H0z"/><path fill="#4285f4" d="M12.4 10H24v13.2L12.4 12z"/></g></svg>`
}

const PERSON = html`<svg class="glyph" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><circle cx="12" cy="8" r="4"/><path d="M4.5 20.5a7.5 7.5 0 0 1 15 0"/></svg>`
