import { type Html, html } from '../../base/html.ts'
import type { Texts } from '../../base/language/texts.ts'
import { hrefOf } from '../../identity/pages/brand/page-file.ts'
import { LOAD_AGAIN } from '../../identity/pages/script/page-script.ts'
import type { PageEntry } from './console-build.ts'

/** Below this path are the files of the console. */
export const ASSETS_PATH = '/console/assets/'

/** Settings that the page passes to the script. They hold no token of the session. */
export interface ConsoleSettings {
  /** Proves that calls come from this page (docs/contract/pages.md#calls-of-the-console). */
  formToken: string
  /** The nonce of style sheets that the script adds. */
  nonce: string
  service: string
  environment: string
  version: string
  /** Whether WEBHOOK_ALLOWED_PRIVATE_TARGETS names any. */
  allowsPrivateTargets: boolean
  language: string
}

/**
 * Renders the page that loads the console, or the portal. `more` is a part of its head. The small script comes first and does
 * not wait for the style sheets, as every other script does.
 */
export function renderConsolePage(entry: PageEntry, settings: ConsoleSettings, more: Html | string = ''): string {
  const { script, start, styles, preloads } = entry
  return html`<!doctype html>
<html lang="${settings.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="signalbox-console" content="${JSON.stringify(settings)}">
${more}<title>${settings.service}</title>
${
  start === undefined
    ? ''
    : html`<script type="module" async src="${ASSETS_PATH}${start}"></script>
`
}<link rel="icon" href="/auth/icon.svg">
${preloads.map((name) => html`<link rel="modulepreload" href="${ASSETS_PATH}${name}">\n`)}${styles.map((name) => html`<link rel="stylesheet" href="${ASSETS_PATH}${name}">\n`)}<script type="module" src="${ASSETS_PATH}${script}"></script>
</head>
<body>
<div id="console"></div>
</body>
</html>
`.text
}

/** Renders the page without a build: with the remedy, or in development until the build is there. */
export function renderUnbuiltPage(
  texts: Texts,
  { service, isBuilding }: { service: string; isBuilding: boolean },
): string {
  const [title, text] = isBuilding
    ? (['console.unbuilt', 'console.unbuilt-text'] as const)
    : (['console.missing', 'console.missing-text'] as const)
  return html`<!doctype html>
<html lang="${texts.lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${isBuilding ? html`<script src="${hrefOf(LOAD_AGAIN)}"></script>\n` : ''}<title>${service}</title>
<link rel="stylesheet" href="/auth/style.css">
</head>
<body class="card">
<main><h1>${texts.say(title)}</h1><p>${texts.say(text)}</p></main>
</body>
</html>
`.text
}

/**
 * The headers of the page: scripts are files of the service, style sheets too or have the nonce. `socket` is the origin of the
 * realtime server, to which the inspector connects.
 */
export function buildConsoleHeaders(nonce: string, socket: string | undefined): Record<string, string> {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    `connect-src 'self'${socket === undefined ? '' : ` ${socket}`}`,
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    'content-security-policy': policy.join('; '),
    'referrer-policy': 'same-origin',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'x-robots-tag': 'noindex, nofollow',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  }
}
