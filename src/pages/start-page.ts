import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { buildPathProblem } from '../http/known-path.ts'
import { findForeignSign, readOrigin } from '../http/local-request.ts'
import type { Brand } from './brand.ts'
import { type Html, html } from './html.ts'
import { buildPage } from './page.ts'

/** What the start page leads to. */
export interface StartPageDeps {
  brand: Brand
  /** In development: what a person at the machine that runs the service may try. */
  development: { adminEmail: string; hasMails: boolean } | undefined
  /** Counts a request; throws `rate_limited`. */
  limit: (request: FastifyRequest, reply: FastifyReply) => void
}

/**
 * Serves the start page at `/` to browsers (docs/contract/pages.md#start-page). Any other caller gets the 404 of a path that
 * does not exist.
 */
export function mountStartPage(server: FastifyInstance, deps: StartPageDeps): void {
  server.get('/', { schema: { hide: true } }, (request, reply) => {
    deps.limit(request, reply)
    reply.header('vary', 'accept')
    if (request.headers.accept?.includes('text/html') !== true) throw buildPathProblem()
    const isLocal = findForeignSign(readOrigin(request.raw)) === undefined
    const page = buildStartPage(deps.brand, isLocal ? deps.development : undefined)
    return reply
      .headers(page.headers ?? {})
      .type('text/html; charset=utf-8')
      .send(page.html)
  })
}

/** Builds the page: the ways on, and in development the first steps. Pure. */
function buildStartPage(brand: Brand, development: StartPageDeps['development']) {
  const content = html`<div class="lead">
<h1>${brand.name}</h1>
<p class="quiet">The service is running. Where do you want to go?</p>
</div>
<section class="panel" aria-label="Ways on">
<ul class="rows">
${renderWay({ title: 'Your account', text: 'Sign in, change your password, see your devices.', href: '/auth/', label: 'Sign in' })}
${renderWay({ title: 'API reference', text: 'Every call with its fields, events and errors.', href: '/docs', label: 'Open the reference' })}
${development?.hasMails === true && renderWay({ title: 'Mails', text: 'What the service would have sent: it has no mail server.', href: '/auth/mail', label: 'Read mails' })}
</ul>
</section>
${development && renderFirstSteps(development.adminEmail)}`
  return buildPage({ brand, title: 'Start', layout: 'wide', content })
}

function renderWay({ title, text, href, label }: { title: string; text: string; href: string; label: string }): Html {
  return html`<li><div class="what"><p><strong>${title}</strong></p><p class="quiet small">${text}</p></div><a class="button plain" href="${href}">${label}</a></li>
`
}

function renderFirstSteps(adminEmail: string): Html {
  return html`<section class="panel" aria-labelledby="steps">
<h2 id="steps">First steps</h2>
<ol class="steps">
<li><p>Sign in as <code>${adminEmail}</code>. The first start printed the password in its terminal. If it is lost, stop the service and set another one: <code>npx signalbox admin password --email ${adminEmail}</code></p></li>
<li><p>See events as they happen, in a second terminal in the same folder: <code>npx signalbox listen</code></p></li>
<li><p>Cause one, in a third: <code>npx signalbox trigger contract.update</code></p></li>
<li><p>Receive it in your own program: <code>docs/guides/webhooks.md</code> in the checkout leads to the first verified delivery.</p></li>
</ol>
<p class="quiet small">This part is shown in development, to this machine alone.</p>
</section>`
}
