import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider'
import type { Brand } from '../../pages/brand.ts'
import { type Html, html } from '../../pages/html.ts'
import { buildPage } from '../../pages/page.ts'

/** The pages that the provider shows itself, as its configuration takes them. */
export interface ProviderPages {
  renderError(ctx: KoaContextWithOIDC, out: ErrorOut, error: unknown): Promise<void>
  showSignOut(ctx: KoaContextWithOIDC, form: string): Promise<void>
  showSignedOut(ctx: KoaContextWithOIDC): Promise<void>
  showCodeInput(ctx: KoaContextWithOIDC, form: string, out?: ErrorOut, error?: unknown): Promise<void>
  showCodeConfirm(ctx: KoaContextWithOIDC, form: string, client: unknown, device: unknown, code: string): Promise<void>
  showDeviceSuccess(ctx: KoaContextWithOIDC): Promise<void>
}

interface Shown {
  title: string
  content: Html
  formTargets?: readonly string[]
}

/** Builds the pages in the frame of the service (docs/contract/pages.md#frame). None of them needs a script. */
export function buildProviderPages(brand: Brand): ProviderPages {
  const show = (ctx: KoaContextWithOIDC, page: Shown) => {
    const built = buildPage({ brand, ...page })
    ctx.type = 'html'
    for (const [name, value] of Object.entries(built.headers ?? {})) ctx.set(name, value)
    ctx.body = built.html
  }
  return {
    renderError: async (ctx, out) => show(ctx, buildErrorPage(out)),
    showSignOut: async (ctx) => show(ctx, buildSignOutPage(ctx)),
    showSignedOut: async (ctx) => show(ctx, SIGNED_OUT),
    showCodeInput: async (ctx, _form, _out, error) => show(ctx, buildCodePage(ctx, error)),
    showCodeConfirm: async (ctx, _form, _client, _device, code) => show(ctx, buildConfirmPage(ctx, code)),
    showDeviceSuccess: async (ctx) => show(ctx, buildDevicePage(ctx)),
  }
}

/** The error of a request that must not go back to its client: its redirect URI is not known to be its own. */
function buildErrorPage({ error, error_description: text }: ErrorOut): Shown {
  return {
    title: 'This request cannot go on',
    content: html`<div class="panel">
<div class="lead">
<h1>This request cannot go on</h1>
<p class="quiet">The app that sent you here made a request that this service does not accept. Nothing was shared with it. Tell the people who run the app:</p>
</div>
<p><code>${error}</code>${text !== undefined && html`: ${text}`}</p>
</div>`,
  }
}

/** The token that proves that this page of the provider sent the form. */
function readFormSecret(ctx: KoaContextWithOIDC): string {
  const { state } = ctx.oidc.session as unknown as { state?: { secret?: string } }
  return state?.secret ?? ''
}

function buildSignOutPage(ctx: KoaContextWithOIDC): Shown {
  const { client, session } = ctx.oidc
  const state = (session as unknown as { state?: { postLogoutRedirectUri?: string } }).state
  const target = state?.postLogoutRedirectUri === undefined ? null : URL.parse(state.postLogoutRedirectUri)
  const name = client?.clientName
  return {
    title: 'Sign out',
    ...(target && { formTargets: [target.origin === 'null' ? target.protocol : target.origin] }),
    content: html`<div class="panel">
<div class="lead">
<h1>Sign out?</h1>
<p class="quiet">${name === undefined ? 'An app asks' : html`<strong>${name}</strong> asks`} to end your session in this browser, and in the apps that you opened with it.</p>
</div>
<form method="post" action="${ctx.oidc.urlFor('end_session_confirm')}">
<input type="hidden" name="xsrf" value="${readFormSecret(ctx)}">
<button type="submit" name="logout" value="yes">Sign out</button>
<button class="plain" type="submit">Stay signed in</button>
</form>
</div>`,
  }
}

const SIGNED_OUT: Shown = {
  title: 'Signed out',
  content: html`<div class="panel"><div class="lead">
<h1>Done</h1>
<p class="quiet">You can close this page.</p>
</div></div>`,
}

/** What went wrong with a code, by the class of the provider's error. */
const CODE_ERRORS: Readonly<Record<string, string>> = {
  NoCodeError: 'Enter the code that your device shows.',
  NotFoundError: 'This code is not known. Compare it with the one on your device.',
  ExpiredError: 'This code has expired. Start again on your device.',
  AlreadyUsedError: 'This code was used already. Start again on your device.',
  AbortedError: 'The request was declined. Your device gets no access.',
}

function buildCodePage(ctx: KoaContextWithOIDC, error: unknown): Shown {
  const { name, userCode } = (error ?? {}) as { name?: string; userCode?: string }
  const text = name === undefined ? undefined : (CODE_ERRORS[name] ?? 'The request could not be completed. Try again.')
  return {
    title: text === undefined ? 'Connect a device' : 'Error: Connect a device',
    content: html`<div class="panel">
<div class="lead">
<h1>Connect a device</h1>
<p class="quiet">Enter the code that your device shows.</p>
</div>
${text !== undefined && html`<div class="notice bad" role="alert"><p>${text}</p></div>`}
<form method="post" action="${ctx.oidc.urlFor('code_verification')}">
<input type="hidden" name="xsrf" value="${readFormSecret(ctx)}">
<div class="field"><label for="user_code">Code</label>
<input id="user_code" name="user_code" type="text" autocomplete="off" autocapitalize="characters" spellcheck="false" value="${userCode ?? ''}"></div>
<button type="submit">Continue</button>
</form>
</div>`,
  }
}

function buildConfirmPage(ctx: KoaContextWithOIDC, code: string): Shown {
  const name = ctx.oidc.client?.clientName ?? 'An app'
  return {
    title: 'Connect a device',
    content: html`<div class="panel">
<div class="lead">
<h1>Is this your device?</h1>
<p class="quiet"><strong>${name}</strong> on a device asks for access to your account. The device must show this code:</p>
</div>
<p class="centered"><code>${code}</code></p>
<p class="small quiet">Continue only if you started this yourself, just now, on a device in front of you. Whoever sent you this code gets the access otherwise.</p>
<form method="post" action="${ctx.oidc.urlFor('code_verification')}">
<input type="hidden" name="xsrf" value="${readFormSecret(ctx)}">
<input type="hidden" name="user_code" value="${code}">
<input type="hidden" name="confirm" value="yes">
<button type="submit">Yes, continue</button>
<button class="plain" type="submit" name="abort" value="yes">No, decline</button>
</form>
</div>`,
  }
}

function buildDevicePage(ctx: KoaContextWithOIDC): Shown {
  const name = ctx.oidc.client?.clientName ?? 'The app'
  return {
    title: 'Device connected',
    content: html`<div class="panel"><div class="lead">
<h1>Device connected</h1>
<p class="quiet"><strong>${name}</strong> continues on your device. You can close this page.</p>
</div></div>`,
  }
}
