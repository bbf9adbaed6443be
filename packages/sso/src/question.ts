const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** The style of the page, and its hash for the policy (Content Security Policy level 3, section 2.3.1). */
const STYLE =
  'body{margin:0;min-height:100vh;display:grid;place-items:center;font:1rem/1.5 system-ui,sans-serif}main{max-width:26rem;padding:1.5rem}h1{font-size:1.5rem;line-height:1.25}button{width:100%;min-height:2.75rem;font:inherit;font-weight:600}p:last-child{text-align:center}a{color:inherit}'
const STYLE_HASH = 'j03xqEQVb8giJ8HTp9wKYMDRZ58LU0M3Wf2ZXCHsIdY='

/**
 * The page that asks a person whether to continue as somebody else. Its form posts to the URL of the landing, which only a
 * page of this app can make the browser do.
 */
export function buildQuestion(stayUrl: string): string {
  const href = stayUrl.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Continue as another person?</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Continue as another person?</h1>
<p>You are signed in here as somebody else. Continue only if you have just opened this app yourself.</p>
<form method="post"><button type="submit">Continue as the other person</button></form>
<p><a href="${href}">Stay as you are</a></p>
</main>
</body>
</html>
`
}

/** The headers of the page. `same-origin`, because browsers replace the origin of a form by `null` under `no-referrer`. */
export const QUESTION_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
}
