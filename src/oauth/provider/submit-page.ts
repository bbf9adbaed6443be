import type { KoaContextWithOIDC } from 'oidc-provider'
import { html } from '../../base/html.ts'
import type { Texts } from '../../base/language/texts.ts'
import type { Brand } from '../../identity/pages/brand/brand.ts'
import { buildPage } from '../../identity/pages/frame/page.ts'
import { renderText } from '../../identity/pages/frame/text.ts'
import { SUBMIT_FORM } from '../../identity/pages/script/page-script.ts'
import { findFormTarget } from '../client/redirect-uri.ts'

/** A form that the browser sends at once. */
interface HandedForm {
  action: string
  fields: readonly (readonly [name: string, value: string])[]
}

/**
 * Reads the form out of the page that the provider's library writes for `form_post` and for its own steps; undefined of
 * any other body. Its page has an inline script, and no policy.
 */
function readHandedForm(body: unknown): HandedForm | undefined {
  if (typeof body !== 'string' || !body.includes('<title>Submitting Callback</title>')) return undefined
  const action = /<form method="post" action="([^"]*)">/.exec(body)?.[1]
  if (action === undefined) return undefined
  const inputs = body.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"\/>/g)
  const fields = Array.from(
    inputs,
    ([, name = '', value = '']) => [decodeEntities(name), decodeEntities(value)] as const,
  )
  return { action: decodeEntities(action), fields }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&amp;': '&',
}

function decodeEntities(text: string): string {
  return text.replace(/&(?:lt|gt|quot|#39|amp);/g, (entity) => ENTITIES[entity] ?? entity)
}

/** Builds the page that forwards a form: by the script of a file, or by a button where scripts are off. */
function buildSubmitPage(texts: Texts, { action, fields }: HandedForm) {
  const title = texts.say('submit.title')
  return {
    texts,
    title,
    scripts: [SUBMIT_FORM],
    content: html`<div class="panel">
<div class="lead">
<h1>${title}</h1>
<p class="quiet">${renderText(texts, 'submit.what')}</p>
</div>
<form method="post" action="${action}">
${fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}"/>\n`)}
<button autofocus type="submit">${renderText(texts, 'continue.link')}</button>
</form>
</div>`,
  }
}

/** Replaces the page of the library with that of the service (docs/contract/pages.md#headers). */
export function replaceSubmitPage(ctx: KoaContextWithOIDC, { brand, texts }: { brand: Brand; texts: Texts }): void {
  const form = readHandedForm(ctx.body)
  if (!form) return
  const { status } = ctx
  const built = buildPage({ brand, ...buildSubmitPage(texts, form), formTargets: listTargets(ctx, form) })
  for (const [name, value] of Object.entries(built.headers ?? {})) ctx.set(name, value)
  // A receiver of another origin may check the origin of the form; the full address contains the request.
  ctx.set('referrer-policy', 'strict-origin')
  ctx.body = built.html
  ctx.type = 'html'
  ctx.status = status
}

/** Destination of the form, and of redirects of its answer, since browsers check both. */
function listTargets(ctx: KoaContextWithOIDC, { action }: HandedForm): string[] {
  const { session, params, entities } = ctx.oidc as unknown as {
    session?: { state?: { postLogoutRedirectUri?: unknown } }
    params?: { redirect_uri?: unknown }
    entities?: { Interaction?: { params?: { redirect_uri?: unknown } } }
  }
  const targets = [
    ...[action, session?.state?.postLogoutRedirectUri],
    ...[params?.redirect_uri, entities?.Interaction?.params?.redirect_uri],
  ]
  const known = targets.filter((target): target is string => typeof target === 'string' && URL.canParse(target))
  return [...new Set(known.map(findFormTarget))]
}
