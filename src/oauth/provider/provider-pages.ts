import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider'
import { type Html, html } from '../../base/html.ts'
import { readKeptLanguage } from '../../base/language/request-language.ts'
import { chooseTexts, type TextKey, type Texts } from '../../base/language/texts.ts'
import type { Brand } from '../../identity/pages/brand/brand.ts'
import { buildPage } from '../../identity/pages/frame/page.ts'
import { renderText } from '../../identity/pages/frame/text.ts'
import { findFormTarget } from '../client/redirect-uri.ts'
import { replaceSubmitPage } from './submit-page.ts'

/** The pages of the provider itself, in the form of its configuration. */
export interface ProviderPages {
  renderError(ctx: KoaContextWithOIDC, out: ErrorOut, error: unknown): Promise<void>
  showSignOut(ctx: KoaContextWithOIDC, form: string): Promise<void>
  showSignedOut(ctx: KoaContextWithOIDC): Promise<void>
  showCodeInput(ctx: KoaContextWithOIDC, form: string, out?: ErrorOut, error?: unknown): Promise<void>
  showCodeConfirm(ctx: KoaContextWithOIDC, form: string, client: unknown, device: unknown, code: string): Promise<void>
  showDeviceSuccess(ctx: KoaContextWithOIDC): Promise<void>
  /** Replaces a page by which the library forwards a form with that of the service. */
  replaceSubmitPage(ctx: KoaContextWithOIDC): void
}

interface Shown {
  title: string
  content: Html
  formTargets?: readonly string[]
}

/** The language of a request: of its own parameters, also of those that a pushed request or a device had. */
function chooseOwnTexts(ctx: KoaContextWithOIDC): Texts {
  const { ui_locales: asked = ctx.query.ui_locales } = (ctx.oidc?.params ?? {}) as { ui_locales?: unknown }
  return chooseTexts({
    uiLocales: asked,
    kept: readKeptLanguage(ctx.get('cookie')),
    acceptLanguage: ctx.get('accept-language'),
  })
}

/** Builds the pages in the frame of the service (docs/contract/pages.md#frame). None of them needs a script. */
export function buildProviderPages(brand: Brand): ProviderPages {
  const show = (ctx: KoaContextWithOIDC, build: (texts: Texts) => Shown) => {
    const texts = chooseOwnTexts(ctx)
    const built = buildPage({ brand, texts, ...build(texts) })
    ctx.type = 'html'
    for (const [name, value] of Object.entries(built.headers ?? {})) ctx.set(name, value)
    ctx.body = built.html
  }
  return {
    renderError: async (ctx, out) => show(ctx, (texts) => buildErrorPage(texts, out)),
    showSignOut: async (ctx) => show(ctx, (texts) => buildSignOutPage(texts, ctx)),
    showSignedOut: async (ctx) => show(ctx, buildSignedOutPage),
    showCodeInput: async (ctx, _form, _out, error) => show(ctx, (texts) => buildCodePage(texts, ctx, error)),
    showCodeConfirm: async (ctx, _form, _client, _device, code) =>
      show(ctx, (texts) => buildConfirmPage(texts, ctx, code)),
    showDeviceSuccess: async (ctx) => show(ctx, (texts) => buildDevicePage(texts, ctx)),
    replaceSubmitPage: (ctx) => {
      if (typeof ctx.body === 'string') replaceSubmitPage(ctx, { brand, texts: chooseOwnTexts(ctx) })
    },
  }
}

/** The error of a request that must not go back to its client: its redirect URI is not known to be its own. */
function buildErrorPage(texts: Texts, { error, error_description: text }: ErrorOut): Shown {
  const title = texts.say('refused.title')
  return {
    title,
    content: html`<div class="panel">
<div class="lead">
<h1>${title}</h1>
<p class="quiet">${renderText(texts, 'refused.what')}</p>
</div>
<p lang="en"><code>${error}</code>${text !== undefined && html`: ${text}`}</p>
</div>`,
  }
}

/** The token that proves that this page of the provider sent the form. */
function readFormSecret(ctx: KoaContextWithOIDC): string {
  const { state } = ctx.oidc.session as unknown as { state?: { secret?: string } }
  return state?.secret ?? ''
}

/** The name of the client of a request, emphasized, or the text for an unnamed one. */
function renderClient(texts: Texts, ctx: KoaContextWithOIDC, unnamed: TextKey): Html {
  const name = ctx.oidc.client?.clientName
  return name === undefined ? renderText(texts, unnamed) : html`<strong>${name}</strong>`
}

/** Asks the user whether to sign out, at the request of a client. */
function buildSignOutPage(texts: Texts, ctx: KoaContextWithOIDC): Shown {
  const state = (ctx.oidc.session as unknown as { state?: { postLogoutRedirectUri?: string } }).state
  const target = state?.postLogoutRedirectUri
  return {
    title: texts.say('sign-out.title'),
    ...(target !== undefined && { formTargets: [findFormTarget(target)] }),
    content: html`<div class="panel">
<div class="lead">
<h1>${renderText(texts, 'sign-out.ask')}</h1>
<p class="quiet">${renderText(texts, 'sign-out.app', { client: renderClient(texts, ctx, 'sign-out.unnamed') })}</p>
</div>
<form method="post" action="${ctx.oidc.urlFor('end_session_confirm')}">
<input type="hidden" name="xsrf" value="${readFormSecret(ctx)}">
<button type="submit" name="logout" value="yes">${renderText(texts, 'sign-out.title')}</button>
<button class="plain" type="submit">${renderText(texts, 'sign-out.stay')}</button>
</form>
</div>`,
  }
}

/** Shown after a sign-out that returns to no client. */
function buildSignedOutPage(texts: Texts): Shown {
  return {
    title: texts.say('sign-out.signed-out'),
    content: html`<div class="panel"><div class="lead">
<h1>${renderText(texts, 'sign-out.done')}</h1>
<p class="quiet">${renderText(texts, 'sign-out.close')}</p>
</div></div>`,
  }
}

/** Reason of a refused code, by the class of the provider's error. */
const CODE_ERRORS: Readonly<Record<string, TextKey>> = {
  NoCodeError: 'code.ask',
  NotFoundError: 'code.unknown',
  ExpiredError: 'code.expired',
  AlreadyUsedError: 'code.used',
  AbortedError: 'code.aborted',
}

/** Asks for the code of a device; `error` is the fault of the last one. */
function buildCodePage(texts: Texts, ctx: KoaContextWithOIDC, error: unknown): Shown {
  const { name, userCode } = (error ?? {}) as { name?: string; userCode?: string }
  const problem = name === undefined ? undefined : renderText(texts, CODE_ERRORS[name] ?? 'code.failed')
  return {
    title: texts.say(problem === undefined ? 'code.connect' : 'code.title-error'),
    content: html`<div class="panel">
<div class="lead">
<h1>${renderText(texts, 'code.connect')}</h1>
<p class="quiet">${renderText(texts, 'code.ask')}</p>
</div>
${problem !== undefined && html`<div class="notice bad" role="alert"><p>${problem}</p></div>`}
<form method="post" action="${ctx.oidc.urlFor('code_verification')}">
<input type="hidden" name="xsrf" value="${readFormSecret(ctx)}">
<div class="field"><label for="user_code">${renderText(texts, 'code.label')}</label>
<input id="user_code" name="user_code" type="text" autocomplete="off" autocapitalize="characters" spellcheck="false" value="${userCode ?? ''}"></div>
<button type="submit">${renderText(texts, 'code.continue')}</button>
</form>
</div>`,
  }
}

/** Asks whether the device of a code belongs to the user (RFC 8628 section 5.4). */
function buildConfirmPage(texts: Texts, ctx: KoaContextWithOIDC, code: string): Shown {
  const client = renderClient(texts, ctx, 'code.unnamed')
  return {
    title: texts.say('code.connect'),
    content: html`<div class="panel">
<div class="lead">
<h1>${renderText(texts, 'code.confirm')}</h1>
<p class="quiet">${renderText(texts, 'code.confirm-device', { client })}</p>
</div>
<p class="centered"><code>${code}</code></p>
<p class="small quiet">${renderText(texts, 'code.warning')}</p>
<form method="post" action="${ctx.oidc.urlFor('code_verification')}">
<input type="hidden" name="xsrf" value="${readFormSecret(ctx)}">
<input type="hidden" name="user_code" value="${code}">
<input type="hidden" name="confirm" value="yes">
<button type="submit">${renderText(texts, 'code.yes')}</button>
<button class="plain" type="submit" name="abort" value="yes">${renderText(texts, 'code.no')}</button>
</form>
</div>`,
  }
}

/** Shown when a device has access. */
function buildDevicePage(texts: Texts, ctx: KoaContextWithOIDC): Shown {
  const client = renderClient(texts, ctx, 'code.unnamed')
  return {
    title: texts.say('code.done'),
    content: html`<div class="panel"><div class="lead">
<h1>${renderText(texts, 'code.done')}</h1>
<p class="quiet">${renderText(texts, 'code.done-next', { client })}</p>
</div></div>`,
  }
}
