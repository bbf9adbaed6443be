const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

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
  'content-security-policy': "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
}
