import type { FastifyRequest } from 'fastify'
import { type Html, html } from '../../../base/html.ts'
import { chooseRequestTexts } from '../../../base/language/request-language.ts'
import type { TextKey, Texts } from '../../../base/language/texts.ts'
import type { Problem } from '../../../http/problem/problem.ts'
import type { ProblemPage } from '../../../http/problem/problem-answer.ts'
import type { Brand } from '../brand/brand.ts'
import { CLEAN_ADDRESS } from '../script/page-script.ts'
import { findErrorMessage } from './error-message.ts'
import { buildPage } from './page.ts'

/** Link that follows an error. */
export interface Continuation {
  href: string
  label: TextKey
}

/** Links that follow a problem, by its cause. */
const WAYS: Readonly<Record<string, Continuation>> = {
  'link_invalid.answered': { href: '/auth/apps', label: 'problem.to-apps' },
  'link_invalid.other_browser': { href: '/auth/', label: 'problem.to-home' },
}

const TO_SIGN_IN: Continuation = { href: '/auth/sign-in', label: 'problem.to-sign-in' }

/** The content of an error page: the fault, the remedy and a link. */
export function renderError(error: {
  code: string
  /** The code of the first entry of `errors`, where there is one. */
  cause?: string | undefined
  texts: Texts
  /** Shown small, for the operator's log. */
  requestId: string | undefined
  /** Null for no link. Default: the sign-in page. */
  continuation?: Continuation | null
}): { title: string; content: Html; texts: Texts } {
  const { texts } = error
  const { title, text } = findErrorMessage(texts, error.code, error.cause)
  const { continuation = WAYS[`${error.code}.${error.cause}`] ?? TO_SIGN_IN } = error
  const content = html`<div class="panel">
<div class="lead">
<h1>${title}</h1>
<p class="quiet">${text}</p>
</div>
${continuation && html`<a class="button" href="${continuation.href}">${texts.say(continuation.label)}</a>`}
</div>
${error.requestId && html`<p class="after reference">${texts.say('problem.reference')} <code>${error.requestId}</code></p>`}`
  return { title, content, texts }
}

/** Facts that the text of a problem depends on. */
export function describeProblem({ code, errors }: Problem): { code: string; cause: string | undefined } {
  return { code, cause: errors?.[0]?.code }
}

/** Renders a problem for a browser that opens a page, or a path below `/auth/`; undefined for other callers. */
export function buildProblemRenderer(
  brand: Brand,
): (problem: Problem, request: FastifyRequest) => ProblemPage | undefined {
  return (problem, request) => {
    if (!isForBrowser(request)) return undefined
    const texts = chooseRequestTexts(request.headers)
    const error = renderError({ ...describeProblem(problem), requestId: request.id, texts })
    const scripts = isEndOfSignIn(problem, request) ? [CLEAN_ADDRESS] : []
    const page = buildPage({ brand, ...error, scripts })
    return { html: page.html, headers: page.headers ?? {} }
  }
}

/** Whether the address may hold data of a provider that no reload needs: after 429 and 503 it is kept. */
function isEndOfSignIn({ status }: Problem, request: FastifyRequest): boolean {
  return request.routeOptions.config.route?.path.startsWith('/api/') === true && status < 429
}

function isForBrowser(request: FastifyRequest): boolean {
  const { route } = request.routeOptions.config
  if (route && route.page !== 'asked') return route.page === true
  return (route !== undefined || /^\/auth(?:[/?]|$)/.test(request.url)) && isOpenedByBrowser(request)
}

/** Whether a browser opens the path, and so shows the answer: a program requests JSON, or sends no `Accept`. */
function isOpenedByBrowser({ headers, query }: FastifyRequest): boolean {
  const isJson = (query as { format?: unknown } | undefined)?.format === 'json'
  return headers.accept?.includes('text/html') === true && !isJson
}
