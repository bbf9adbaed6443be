import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { isPlainSource } from '../../../http/request/plain-host.ts'
import type { AnswerCookie } from '../../../http/route/outcome.ts'
import type { PageOutcome } from '../../../http/route/route.ts'
import type { Brand } from '../brand/brand.ts'
import { hrefOf, loadPageFile, type PageFile } from '../brand/page-file.ts'

/** The icon of every page in the browser's tab. */
export const ICON = loadPageFile('/auth/icon.svg', 'image/svg+xml', new URL('./icon.svg', import.meta.url))

/** Parts of a page. */
export interface PageParts {
  brand: Brand
  /** The name of the page, without that of the product. */
  title: string
  /** Content of `main`, with one `h1`. */
  content: Html
  /** Links of the header, for a user who is signed in. */
  navigation?: Html
  texts: Texts
  /** Scripts that improve the page, which works without them. Each is a file that the service serves. */
  scripts?: readonly PageFile[]
  /** `card` (the default): one narrow card in the middle. `wide`: a page of sections. */
  layout?: 'card' | 'wide'
}

/** A page before its frame. `formTargets`: as in `PageRights`. */
export type PageBody = Omit<PageParts, 'brand'> & Pick<PageRights, 'formTargets'>

/** Permissions of a page beyond the style sheet and images of the service. */
export interface PageRights {
  /** Whether it loads scripts of the service, which may call the service. */
  hasScripts?: boolean
  /** Origins, or custom schemes with a colon, to which the answer to its form may redirect: browsers check that too. */
  formTargets?: readonly string[]
}

/**
 * The headers of a page (docs/contract/pages.md#headers). A page with a form sends its origin with the form, which
 * `no-referrer` would replace by `null` (Fetch standard, "append a request `Origin` header"): such pages are `same-origin`.
 */
export function buildPageHeaders(rights: PageRights & { hasForm?: boolean } = {}): Record<string, string> {
  const { hasScripts = false, formTargets = [], hasForm = false } = rights
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self' data:",
    // A target that was stored before its rule would add directives of its own.
    `form-action ${["'self'", ...formTargets.filter(isPlainSource)].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
    ...(hasScripts ? ["script-src 'self'", "connect-src 'self'"] : []),
  ]
  return {
    'content-security-policy': policy.join('; '),
    'referrer-policy': hasForm ? 'same-origin' : 'no-referrer',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'x-robots-tag': 'noindex, nofollow',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  }
}

/** Renders a whole page. Every text in it was escaped by `html`. */
export function renderPage({ brand, title, content, navigation, texts, scripts = [], layout }: PageParts): string {
  const tags = scripts.map((file) => html`<script src="${hrefOf(file)}" defer></script>\n`)
  return html`<!doctype html>
<html lang="${texts.lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · ${brand.name}</title>
<link rel="stylesheet" href="${hrefOf(brand.style)}">
<link rel="icon" href="${hrefOf(brand.logo ?? ICON)}">
${tags}</head>
<body class="${layout ?? 'card'}">
${navigation && html`<a class="skip" href="#main">${texts.say('navigation.skip')}</a>\n`}<header>
<a class="brand" href="/auth/">${renderMark(brand)}<span>${brand.name}</span></a>
${navigation}</header>
<main id="main" tabindex="-1">
${content}
</main>
</body>
</html>
`.text
}

/** The mark beside the name of the product, which says the same, so that it has no text of its own. */
function renderMark(brand: Brand): Html {
  if (brand.logo) return html`<img src="${hrefOf(brand.logo)}" alt="" width="32" height="32">`
  return MARK
}

const MARK = html`<svg class="mark" viewBox="0 0 32 32" width="32" height="32" aria-hidden="true" focusable="false"><rect width="32" height="32" rx="8"/><circle cx="16" cy="11" r="4.5"/><circle class="low" cx="16" cy="22" r="3.5"/></svg>`

/** Builds the outcome of a page. `formTargets`: where the answer to its form may lead outside of the service. */
export function buildPage(
  page: PageParts & { status?: number; formTargets?: readonly string[]; cookies?: readonly AnswerCookie[] },
): PageOutcome {
  const { status, formTargets = [], cookies, ...parts } = page
  const rights = {
    hasScripts: (parts.scripts ?? []).length > 0,
    hasForm: parts.content.text.includes('<form') || parts.navigation?.text.includes('<form') === true,
    formTargets,
  }
  return {
    kind: 'page',
    html: renderPage(parts),
    headers: buildPageHeaders(rights),
    ...(status !== undefined && { status }),
    ...(cookies && { cookies }),
  }
}
