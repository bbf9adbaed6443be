import { say } from './texts.ts'

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** The style of the page. */
const STYLE =
  'body{margin:0;min-height:100vh;display:grid;place-items:center;font:1rem/1.5 system-ui,sans-serif}main{max-width:26rem;padding:1.5rem}h1{font-size:1.5rem;line-height:1.25}button{width:100%;min-height:2.75rem;font:inherit;font-weight:600}p:last-child{text-align:center}a{color:inherit}'

const escapeText = (text: string) => text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character)

/** Who is asked, as whom to continue, the language, and the style of the app behind that of the page. */
export type QuestionView = {
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** Default `en`. */
  readonly language?: string | undefined
  readonly style?: string | undefined
}

/**
 * The page that asks a user whether to continue as somebody else. Its form posts to the URL of the landing, which only a
 * page of this app can make the browser do.
 */
export function buildQuestion(stayUrl: string, view: QuestionView = {}): string {
  const { from, to, language = 'en', style = '' } = view
  const title = to === undefined ? say(language, 'title') : say(language, 'titleNamed', { to })
  const text = from === undefined ? say(language, 'text') : say(language, 'textNamed', { from })
  const button = to === undefined ? say(language, 'button') : say(language, 'buttonNamed', { to })
  const stay = from === undefined ? say(language, 'stay') : say(language, 'stayNamed', { from })
  return `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeText(title)}</title>
<style>${STYLE}${style}</style>
</head>
<body>
<main>
<h1>${escapeText(title)}</h1>
<p>${escapeText(text)}</p>
<form method="post"><button type="submit">${escapeText(button)}</button></form>
<p><a href="${escapeText(stayUrl)}">${escapeText(stay)}</a></p>
</main>
</body>
</html>
`
}

/**
 * The headers of the page; the policy names the hash of its style (Content Security Policy level 3, section 2.3.1).
 * `same-origin`, because browsers replace the origin of a form by `null` under `no-referrer`.
 */
export async function buildQuestionHeaders({ style = '' }: QuestionView = {}): Promise<Record<string, string>> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(`${STYLE}${style}`))
  const hash = btoa(String.fromCharCode(...new Uint8Array(digest)))
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'sha256-${hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
  }
}
