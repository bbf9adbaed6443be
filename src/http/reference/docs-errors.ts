import { escapeHtml } from '../../base/html.ts'
import { PROBLEMS, type ProblemCode } from '../problem/problem.ts'
import { renderText } from './docs-page.ts'

/** Splits `docs/errors.md` into its introduction and the part of each code, whose heading is the code. */
export function parseErrorTexts(markdown: string): { introduction: string; texts: Map<string, string> } {
  const [head = '', ...parts] = markdown.split(/^## /m)
  const texts = new Map<string, string>()
  for (const part of parts) {
    const heading = part.slice(0, part.indexOf('\n'))
    const code = /^`([a-z_]+)`$/.exec(heading)?.[1]
    if (!code || texts.has(code)) throw new Error(`docs/errors.md: "## ${heading}" is no code, or is there twice`)
    texts.set(code, part.slice(heading.length).trim())
  }
  return { introduction: head.replace(/^# .*\n/, '').trim(), texts }
}

/** All codes with their status and title. */
export function renderErrorList(introduction: string): string {
  const entries = Object.entries(PROBLEMS).map(([code, { status, title }]) => {
    return `<div><dt><a href="/docs/errors/${code}"><code>${code}</code></a><span>${status}</span></dt><dd>${escapeHtml(title)}</dd></div>`
  })
  return `<h1>Errors</h1>\n${renderText(introduction)}\n<dl>${entries.join('\n')}</dl>`
}

/** The page of one code. */
export function renderError(code: ProblemCode, text: string): string {
  const { status, title } = PROBLEMS[code]
  return `<h1>${escapeHtml(title)}</h1>
<p class="call"><span class="method">${status}</span><code>${code}</code></p>
${renderText(text)}
<p><a href="/docs/errors">All errors</a></p>`
}

/** The page for unknown paths of the reference. */
export const MISSING_PAGE = `<h1>There is no such page</h1>
<p>The reference begins at <a href="/docs">its overview</a>; all error codes are <a href="/docs/errors">listed here</a>.</p>`
