import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { KeptMail } from '../../mail/kept-mail.store.ts'
import type { Brand } from '../brand/brand.ts'
import { describeInstant } from '../frame/age.ts'
import { buildPage } from '../frame/page.ts'

/** Builds the page of the mails stored in development, the newest first, with their links. */
export function buildKeptMailsPage(brand: Brand, texts: Texts, mails: readonly KeptMail[]) {
  const content = html`<div class="lead">
<h1>${texts.say('mails.title')}</h1>
<p class="quiet">${texts.say('mails.text')}</p>
</div>
${mails.length === 0 ? html`<p class="panel quiet">${texts.say('mails.none')}</p>` : mails.map((mail) => renderMail(texts, mail))}`
  return buildPage({ brand, texts, title: texts.say('mails.title'), layout: 'wide', content })
}

function renderMail(texts: Texts, { to, subject, text, createdAt }: KeptMail): Html {
  return html`<article class="panel">
<div class="lead">
<h2>${subject}</h2>
<p class="quiet small">${texts.say('mails.to', { address: to })} · <time datetime="${createdAt.toISOString()}">${describeInstant(texts, createdAt)}</time></p>
</div>
<p class="letter">${splitLinks(text)}</p>
</article>
`
}

function splitLinks(text: string): Html[] {
  return text
    .trim()
    .split(/(https?:\/\/[^\s<>"]+)/)
    .map((part, index) => (index % 2 === 1 ? html`<a href="${part}">${part}</a>` : html`${part}`))
}
