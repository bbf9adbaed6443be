import { describe, expect, test } from 'vitest'
import { html } from '../../../base/html.ts'
import { chooseTexts, ENGLISH } from '../../../base/language/texts.ts'
import { STYLE } from '../brand/brand.ts'
import { buildPage, buildPageHeaders, renderPage } from './page.ts'

const brand = { name: 'Acme <Rail>', logo: null, style: STYLE, colors: null }
const page = { brand, texts: ENGLISH, title: 'Sign in', content: html`<h1>Sign in</h1>` }

describe('a page', () => {
  test('has a language, a title with the name of the product, landmarks, and the style sheet by its hash', () => {
    const text = renderPage(page)
    expect(text).toContain('<html lang="en">')
    expect(text).toContain('<title>Sign in · Acme &lt;Rail&gt;</title>')
    expect(text).toMatch(/<header>[\s\S]*<main id="main" tabindex="-1">[\s\S]*<\/main>/)
    expect(text).toContain(`href="/auth/style.css?v=${STYLE.hash}"`)
    expect(text).not.toMatch(/<script|style=|\son\w+=/)
  })

  test('names its scripts and then allows them', () => {
    const script = { ...STYLE, path: '/auth/sample.js' }
    const { html: text, headers } = buildPage({ ...page, scripts: [script] })
    expect(text).toContain(`<script src="/auth/sample.js?v=${STYLE.hash}" defer></script>`)
    expect(headers?.['content-security-policy']).toContain("script-src 'self'")
  })

  test('with a form sends its origin, without one no referrer', () => {
    const form = html`<h1>Sign in</h1><form method="post"></form>`
    expect(buildPage({ ...page, content: form }).headers?.['referrer-policy']).toBe('same-origin')
    expect(buildPage(page).headers?.['referrer-policy']).toBe('no-referrer')
  })

  test('of another language says so', () => {
    expect(renderPage({ ...page, texts: chooseTexts({ acceptLanguage: 'de' }) })).toContain('<html lang="de">')
  })
})

describe('the headers', () => {
  test('allow nothing but the style sheet and images of the service', () => {
    expect(buildPageHeaders()).toEqual({
      'content-security-policy':
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'x-robots-tag': 'noindex, nofollow',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    })
  })

  test('name where the answer to a form redirects', () => {
    const { 'content-security-policy': policy } = buildPageHeaders({ formTargets: ['https://app.test', 'acme:'] })
    expect(policy).toContain("form-action 'self' https://app.test acme:;")
    const formTargets = ["https://a;script-src'unsafe-inline'.test", 'https://a,b.test', 'https://app.test']
    const { 'content-security-policy': kept } = buildPageHeaders({ formTargets })
    expect(kept).toContain("form-action 'self' https://app.test;")
    expect(kept).not.toContain('script-src')
  })
})
