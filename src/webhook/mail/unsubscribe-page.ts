import { html } from '../../base/html.ts'
import type { Texts } from '../../base/language/texts.ts'
import type { PageParts } from '../../identity/pages/frame/page.ts'

type Page = Omit<PageParts, 'brand'>

/** Path of the link in a mail that stops the mails. */
export const UNSUBSCRIBE = '/auth/webhook-mail'

/** Builds the page of the link that stops mails about webhooks: a button, because mail filters open links. */
export function buildUnsubscribePage({ texts, token }: { texts: Texts; token: string }): Page {
  const content = html`<div class="panel">
<div class="lead">
<h1>${texts.say('webhook-mail.stop-title')}</h1>
<p class="quiet">${texts.say('webhook-mail.stop-text')}</p>
</div>
<form method="post" action="${UNSUBSCRIBE}?token=${encodeURIComponent(token)}">
<input type="hidden" name="List-Unsubscribe" value="One-Click">
<button type="submit">${texts.say('webhook-mail.stop')}</button>
</form>
</div>`
  return { texts, title: texts.say('webhook-mail.stop-title'), content }
}

/** The page after the mails were stopped. */
export function buildStoppedPage({ texts }: { texts: Texts }): Page {
  const content = html`<div class="panel">
<div class="lead">
<h1>${texts.say('webhook-mail.stopped-title')}</h1>
<p class="quiet">${texts.say('webhook-mail.stopped-text')}</p>
</div>
</div>`
  return { texts, title: texts.say('webhook-mail.stopped-title'), content }
}
