import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Html, html } from '../../../base/html.ts'
import { chooseTexts, type TextKey, type Texts } from '../../../base/language/texts.ts'
import { findForeignSign, readOrigin } from '../../../http/request/local-request.ts'
import { buildPathProblem } from '../../../http/route/known-path.ts'
import type { Brand } from '../brand/brand.ts'
import { buildPage } from '../frame/page.ts'
import { renderText } from '../frame/text.ts'

/** The application of the realtime server, with what a client and a publisher need of it. */
interface ShownRealtime {
  appId: string
  key: string
  secret: string
  socket: { host: string; port: number; isTls: boolean }
}

interface Development {
  adminEmail: string
  hasMails: boolean
  baseUrl: () => string
  findRealtime: () => ShownRealtime | undefined
}

const USUAL_URL = 'http://localhost:3000'

/** Links of the start page. */
export interface StartPageDeps {
  brand: Brand
  /** In development: first steps for a user at the machine of the service. */
  development: Development | undefined
  /** Counts a request; throws `rate_limited`. */
  limit: (request: FastifyRequest, reply: FastifyReply) => void
}

/** Serves the start page at `/`, as HTML or text (docs/contract/pages.md#start-page); a 404 to any other caller. */
export function mountStartPage(server: FastifyInstance, deps: StartPageDeps): void {
  server.get('/', { schema: { hide: true } }, (request, reply) => {
    deps.limit(request, reply)
    reply.header('vary', 'accept, accept-language')
    // Without the header any type is accepted (RFC 9110 section 12.5.1).
    const { accept = '*/*' } = request.headers
    const isPage = accept.includes('text/html')
    if (!isPage && !/(?:\*|text)\/\*|text\/plain/.test(accept)) throw buildPathProblem()
    const isLocal = findForeignSign(readOrigin(request.raw)) === undefined
    const texts = chooseTexts({ acceptLanguage: request.headers['accept-language'] })
    const development = isLocal ? deps.development : undefined
    const page = buildStartPage(deps.brand, texts, development)
    reply.headers(page.headers ?? {})
    if (isPage) return reply.type('text/html; charset=utf-8').send(page.html)
    return reply.type('text/plain; charset=utf-8').send(buildStartText(deps.brand, texts, development))
  })
}

interface Way {
  title: TextKey
  text: TextKey
  href: string
  label: TextKey
}

const WAYS: readonly Way[] = [
  { title: 'start.console', text: 'start.console-text', href: '/console', label: 'start.console-open' },
  { title: 'start.account', text: 'start.account-text', href: '/auth/', label: 'start.account-open' },
  { title: 'start.reference', text: 'start.reference-text', href: '/docs', label: 'start.reference-open' },
]
const MAILS: Way = { title: 'start.mails', text: 'start.mails-text', href: '/auth/mail', label: 'start.mails-open' }

function listWays(development: StartPageDeps['development']): readonly Way[] {
  return development?.hasMails === true ? [...WAYS, MAILS] : WAYS
}

/** Builds the page: the ways on, and in development the first steps. Pure. */
function buildStartPage(brand: Brand, texts: Texts, development: StartPageDeps['development']) {
  const content = html`<div class="lead">
<h1>${brand.name}</h1>
<p class="quiet">${texts.say('start.lead')}</p>
</div>
<section class="panel" aria-label="${texts.say('start.ways')}">
<ul class="rows">
${listWays(development).map((way) => renderWay(texts, way))}</ul>
</section>
${development && renderFirstSteps(texts, development)}
${renderRealtime(texts, development?.findRealtime())}`
  return buildPage({ brand, texts, title: texts.say('start.title'), layout: 'wide', content })
}

function buildStartText(brand: Brand, texts: Texts, development: StartPageDeps['development']): string {
  const lines = listWays(development).map(
    ({ title, href }) => `${texts.say(title)}: ${development?.baseUrl() ?? ''}${href}`,
  )
  return `${[brand.name, ...lines, ...(development ? [texts.say('start.in-browser')] : [])].join('\n')}\n`
}

function renderWay(texts: Texts, { title, text, href, label }: Way): Html {
  return html`<li><div class="what"><p><strong>${texts.say(title)}</strong></p><p class="quiet small">${texts.say(text)}</p></div><a class="button plain" href="${href}">${texts.say(label)}</a></li>
`
}

/** The keys of the realtime server, for clients and publishers of the Pusher protocol. */
function renderRealtime(texts: Texts, app: ShownRealtime | undefined): Html | false {
  if (!app) return false
  const { appId, key, secret, socket } = app
  const url = `${socket.isTls ? 'wss' : 'ws'}://${socket.host}:${socket.port}`
  const facts = [
    ['start.realtime-url', url],
    ['start.realtime-app', appId],
    ['start.realtime-key', key],
    ['start.realtime-secret', secret],
  ] as const
  return html`<section class="panel" aria-labelledby="realtime">
<h2 id="realtime">${texts.say('start.realtime')}</h2>
<p>${texts.say('start.realtime-text')}</p>
<ul class="steps">${facts.map(([name, value]) => html`<li>${texts.say(name)}: <code>${value}</code></li>\n`)}</ul>
</section>`
}

/** The command for another password of the administrator; keeps the API keys, one of which the next steps use. */
export function buildPasswordCommand(adminEmail: string): string {
  return `npx signalbox admin password --email ${adminEmail} --keep-api-keys`
}

function renderFirstSteps(texts: Texts, { adminEmail, baseUrl }: Development): Html {
  const code = (text: string) => html`<code>${text}</code>`
  const password = code(buildPasswordCommand(adminEmail))
  const url = baseUrl() === USUAL_URL ? '' : ` --url ${baseUrl()}`
  return html`<section class="panel" aria-labelledby="steps">
<h2 id="steps">${texts.say('start.steps')}</h2>
<ol class="steps">
<li><p>${renderText(texts, 'start.step-sign-in', { email: code(adminEmail), command: password })}</p></li>
<li><p>${renderText(texts, 'start.step-listen', { command: code(`npx signalbox listen${url}`) })}</p></li>
<li><p>${renderText(texts, 'start.step-trigger', { command: code(`npx signalbox trigger contract.update${url}`) })}</p></li>
<li><p>${renderText(texts, 'start.step-receive', { file: code('docs/guides/webhooks.md') })}</p></li>
</ol>
<p class="quiet small">${texts.say('start.steps-where')}</p>
</section>`
}
