/** Text for HTML, in an element or in a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** A page. `content` is HTML, in which everything from outside was escaped. */
export function renderPage(title: string, content: string): string {
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title></head>` +
    `<body><main><h1>${escapeHtml(title)}</h1>${content}</main></body></html>`
  )
}

/** The headers of every page. A form may lead to this app and, by a redirect, to `origins`. */
export function buildPageHeaders(...origins: string[]): Record<string, string> {
  return {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'content-security-policy': `default-src 'none'; form-action ${["'self'", ...origins].join(' ')}; frame-ancestors 'none'`,
  }
}

/** Contents of a page for a user with a session. */
export function renderSession(email: string): string {
  return (
    `<p id="who">Signed in as ${escapeHtml(email)}.</p>` +
    '<form method="post" action="/sign-out"><button>Sign out everywhere</button></form>'
  )
}
