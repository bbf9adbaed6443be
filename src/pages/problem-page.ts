import type { FastifyRequest } from 'fastify'
import type { Problem } from '../http/problem.ts'
import type { ProblemPage } from '../http/problem-answer.ts'
import type { Brand } from './brand.ts'
import { findErrorMessage } from './error-message.ts'
import { type Html, html } from './html.ts'
import { buildPage } from './page.ts'

/** Where a person continues after an error. */
export interface Continuation {
  href: string
  label: string
}

const TO_SIGN_IN: Continuation = { href: '/auth/sign-in', label: 'Go to sign-in' }

/** The content of an error page: what happened and what to do, in words of ours, and where to continue. */
export function renderError(error: {
  code: string
  /** Shown small, for the operator's log. */
  requestId: string | undefined
  continuation?: Continuation
}): { title: string; content: Html } {
  const { title, text } = findErrorMessage(error.code)
  const { href, label } = error.continuation ?? TO_SIGN_IN
  const content = html`<div class="panel">
<div class="lead">
<h1>${title}</h1>
<p class="quiet">${text}</p>
</div>
<a class="button" href="${href}">${label}</a>
</div>
${error.requestId && html`<p class="after reference">Reference <code>${error.requestId}</code></p>`}`
  return { title, content }
}

/**
 * Builds the function that renders a problem for a browser: of a route with a page, and of an unknown path below `/auth/`
 * that a browser opens. Any other caller gets the problem itself.
 */
export function buildProblemRenderer(
  brand: Brand,
): (problem: Problem, request: FastifyRequest) => ProblemPage | undefined {
  return (problem, request) => {
    if (!isForBrowser(request)) return undefined
    const page = buildPage({ brand, ...renderError({ code: problem.code, requestId: request.id }) })
    return { html: page.html, headers: page.headers ?? {} }
  }
}

function isForBrowser(request: FastifyRequest): boolean {
  const { route } = request.routeOptions.config
  if (route) return route.page === true
  return /^\/auth(?:[/?]|$)/.test(request.url) && request.headers.accept?.includes('text/html') === true
}
