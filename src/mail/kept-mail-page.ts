import type { Brand } from '../pages/brand.ts'
import { type Html, html } from '../pages/html.ts'
import { buildPage } from '../pages/page.ts'
import type { KeptMail } from './kept-mail.store.ts'

/** Builds the page of the mails that development kept, the newest first, with links that a person can follow. */
export function buildKeptMailsPage(brand: Brand, mails: readonly KeptMail[]) {
  const content = html`<div class="lead">
<h1>Mails</h1>
<p class="quiet">What this service would have sent. It has no mail server, so mails are kept here, for this machine alone.</p>
</div>
${mails.length === 0 ? html`<p class="panel quiet">No mail yet.</p>` : mails.map(renderMail)}`
  return buildPage({ brand, title: 'Mails', layout: 'wide', content })
}

function renderMail({ to, subject, text, createdAt }: KeptMail): Html {
  return html`<article class="panel">
<div class="lead">
<h2>${subject}</h2>
<p class="quiet small">To ${to} · <time datetime="${createdAt.toISOString()}">${createdAt.toUTCString()}</time></p>
</div>
<p class="letter">${splitLinks(text)}</p>
</article>
`
}

/** The text with its http and https URLs as links. */
function splitLinks(text: string): Html[] {
  return text
    .trim()
    .split(/(https?:\/\/[^\s<>"]+)/)
    .map((part, index) => (index % 2 === 1 ? html`<a href="${part}">${part}</a>` : html`${part}`))
}
