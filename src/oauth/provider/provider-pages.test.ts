import type { KoaContextWithOIDC } from 'oidc-provider'
import { describe, expect, test } from 'vitest'
import { loadBrand } from '../../identity/pages/brand/brand.ts'
import { buildProviderPages, type ProviderPages } from './provider-pages.ts'

const pages = buildProviderPages(loadBrand({ name: 'Acme', logoPath: undefined }))

/** What the library gives for a page. */
interface Given {
  params?: Record<string, unknown>
  query?: Record<string, unknown>
  headers?: Record<string, string>
  session?: object
  client?: object
  body?: unknown
}

/** The page that `show` writes, with its headers. */
async function render(
  show: (pages: ProviderPages, ctx: KoaContextWithOIDC) => Promise<void> | void,
  { params, query = {}, headers = {}, session = {}, client, body }: Given = {},
) {
  const sent = new Map<string, string>()
  const ctx = {
    ...{ query, body, status: 200, type: undefined as string | undefined },
    get: (name: string) => headers[name] ?? '',
    set: (name: string, value: string) => sent.set(name, value),
    oidc: { params, session, client, urlFor: (name: string) => `/oauth/${name}` },
  }
  await show(pages, ctx as unknown as KoaContextWithOIDC)
  return { type: ctx.type, text: String(ctx.body), headers: sent }
}

const titleOf = (text: string) => /<title>([^<]*) · Acme<\/title>/.exec(text)?.[1]

test('a page is HTML with the policy of the service', async () => {
  const { type, headers, text } = await render(({ showSignedOut }, ctx) => showSignedOut(ctx))
  expect(type).toBe('html')
  expect(headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(headers.get('x-frame-options')).toBe('DENY')
  expect(titleOf(text)).toBe('Signed out')
})

test.each<[name: string, lang: string, given: Given]>([
  ['the parameters of the request', 'de', { params: { ui_locales: 'de' }, query: { ui_locales: 'en' } }],
  ['its query, where the library has read none', 'de', { query: { ui_locales: 'de' } }],
  ['the header of the browser', 'de', { headers: { 'accept-language': 'de' } }],
  ['nothing', 'en', {}],
])('the language follows from %s: %s', async (_name, lang, given) => {
  const { text } = await render(({ showSignedOut }, ctx) => showSignedOut(ctx), given)
  expect(text).toContain(`<html lang="${lang}">`)
})

test('an error shows its code, and its text where there is one', async () => {
  const show = (out: { error: string; error_description?: string }) =>
    render(({ renderError }, ctx) => renderError(ctx, out, undefined))
  const alone = await show({ error: 'invalid_client' })
  expect(alone.text).toContain('<p lang="en"><code>invalid_client</code></p>')
  const both = await show({ error: 'invalid_client', error_description: 'a <b> text' })
  expect(both.text).toContain('<p lang="en"><code>invalid_client</code>: a &lt;b&gt; text</p>')
})

describe('the question whether to sign out', () => {
  const ask = (given?: Given) => render(({ showSignOut }, ctx) => showSignOut(ctx, ''), given)

  test('has the secret of its session, and names the client', async () => {
    const named = await ask({ session: { state: { secret: 's3cret' } }, client: { clientName: 'Shop & Co' } })
    expect(named.text).toContain('<input type="hidden" name="xsrf" value="s3cret">')
    expect(named.text).toContain('action="/oauth/end_session_confirm"')
    expect(named.text).toContain('<strong>Shop &amp; Co</strong> asks to end')
    const unnamed = await ask({ client: {} })
    expect(unnamed.text).toContain('An app asks to end')
    expect(unnamed.text).toContain('name="xsrf" value=""')
  })

  test('lets its form lead to the client, where it returns to one', async () => {
    const policyOf = async (state: object) => (await ask({ session: { state } })).headers.get('content-security-policy')
    expect(await policyOf({ postLogoutRedirectUri: 'https://shop.example.com/out' })).toContain(
      "form-action 'self' https://shop.example.com;",
    )
    expect(await policyOf({})).toContain("form-action 'self';")
  })
})

describe('the code of a device', () => {
  const ask = (error?: object) =>
    render(({ showCodeInput }, ctx) => showCodeInput(ctx, '', undefined, error), {
      session: { state: { secret: 's3cret' } },
    })

  test('is asked for', async () => {
    const { text } = await ask()
    expect(titleOf(text)).toBe('Connect a device')
    expect(text).not.toContain('role="alert"')
    expect(text).toContain('autocapitalize="characters" spellcheck="false" value=""')
    expect(text).toContain('name="xsrf" value="s3cret"')
    expect(text).toContain('action="/oauth/code_verification"')
  })

  test.each([
    ['NoCodeError', 'Enter the code'],
    ['NotFoundError', 'not known'],
    ['ExpiredError', 'expired'],
    ['AlreadyUsedError', 'used already'],
    ['AbortedError', 'declined'],
    ['AnyOther', 'could not be completed'],
  ])('that is refused for %s is asked for again, with the reason', async (name, reason) => {
    const { text } = await ask({ name, userCode: 'ABCD-"1' })
    expect(titleOf(text)).toBe('Error: Connect a device')
    expect(/role="alert"><p>([^<]*)</.exec(text)?.[1]).toContain(reason)
    expect(text).toContain('value="ABCD-&quot;1"')
  })

  test('is shown with its client before the device gets access, and after it', async () => {
    const client = { clientName: 'TV' }
    const asked = await render(
      ({ showCodeConfirm }, ctx) => showCodeConfirm(ctx, '', undefined, undefined, 'ABCD-1234'),
      { client, session: { state: { secret: 's3cret' } } },
    )
    expect(asked.text).toContain('<strong>TV</strong> on a device asks')
    expect(asked.text).toContain('<code>ABCD-1234</code>')
    expect(asked.text).toContain('name="user_code" value="ABCD-1234"')
    expect(asked.text).toContain('name="xsrf" value="s3cret"')
    const done = await render(({ showDeviceSuccess }, ctx) => showDeviceSuccess(ctx), { client })
    expect(titleOf(done.text)).toBe('Device connected')
    expect(done.text).toContain('<strong>TV</strong> continues')
  })
})

test('the page by which the library forwards a form is replaced, and nothing else', async () => {
  const replace = (body: unknown) => render(({ replaceSubmitPage }, ctx) => replaceSubmitPage(ctx), { body })
  const form = `<title>Submitting Callback</title><form method="post" action="https://app.example.com/back">
<input type="hidden" name="code" value="a&amp;b"/></form>`
  const { text, headers } = await replace(form)
  expect(text).toContain('<input type="hidden" name="code" value="a&amp;b"/>')
  expect(text).toContain('<script src="/auth/submit-form.js')
  expect(headers.get('content-security-policy')).toContain("form-action 'self' https://app.example.com;")
  expect((await replace('<title>Another</title>')).text).toBe('<title>Another</title>')
  const other = { error: 'none' }
  expect((await replace(other)).headers.size).toBe(0)
})
