import { escapeHtml } from '../../base/html.ts'
import type { ProblemCode } from '../problem/problem.ts'
import type { OpenApiDocument } from './openapi-document.ts'

/** One line of the index of the reference. */
export interface IndexEntry {
  kind: 'operation' | 'event' | 'error'
  label: string
  /** Method and path, or code; empty for an event type, whose label is its name. */
  name: string
  /** More words that find it. */
  words: string
  path: string
}

/** The search index of the reference: operations, event types, error codes. Pure. */
export function listIndex(
  document: OpenApiDocument,
  problems: Readonly<Record<ProblemCode, { title: string; status: number }>>,
): IndexEntry[] {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { operationId, summary = operationId, description = '', tags = [] }]) => ({
      kind: 'operation' as const,
      label: summary,
      name: `${method.toUpperCase()} ${path}`,
      words: `${operationId} ${tags.join(' ')} ${description}`,
      path: `/docs/${tags[0]}#${operationId}`,
    })),
  )
  const events = Object.entries(document.webhooks).map(([name, { post }]) => ({
    kind: 'event' as const,
    label: name,
    name: '',
    words: post.description ?? '',
    path: `/docs/events#${post.operationId}`,
  }))
  const errors = Object.entries(problems).map(([code, { title, status }]) => ({
    kind: 'error' as const,
    label: title,
    name: code,
    words: String(status),
    path: `/docs/errors/${code}`,
  }))
  return [...operations, ...events, ...errors]
}

/** The page of the search: the index, and a field by which a script filters it. Without scripts, the index. */
export function renderSearch(entries: readonly IndexEntry[]): string {
  const lines = entries.map(({ kind, label, name, words, path }) => {
    const link = `<a href="${escapeHtml(path)}">${escapeHtml(label)}</a>`
    const code = name === '' ? '' : `<code>${escapeHtml(name)}</code> `
    return `<li data-words="${escapeHtml(words)}">${link} ${code}<span class="quiet">${kind}</span></li>`
  })
  return `<h1>Search</h1>
<p>Operations, event types and errors. All words must occur, in any order.</p>
<p class="search" hidden><label for="words">Words</label> <input id="words" type="search" autocomplete="off" spellcheck="false"></p>
<p id="count" role="status" class="quiet">${entries.length} entries</p>
<ul id="index" class="index">
${lines.join('\n')}
</ul>`
}

/**
 * Filters the index on input. The words are in the URL too, so that a search can be linked: in its fragment, which is
 * not sent to the server, or, for links and browser search engines, in `?q=`.
 */
export const SEARCH_SCRIPT = `
const field = document.getElementById('words')
const count = document.getElementById('count')
const lines = [...document.querySelectorAll('#index > li')].map((element) => ({
  element,
  text: (element.textContent + ' ' + element.dataset.words).toLowerCase(),
}))
function filter() {
  const words = field.value.toLowerCase().split(/\\s+/).filter(Boolean)
  let found = 0
  for (const { element, text } of lines) {
    element.hidden = !words.every((word) => text.includes(word))
    if (!element.hidden) found += 1
  }
  count.textContent = found + (found === 1 ? ' entry' : ' entries')
}
function readAddress() {
  try {
    const asked = new URLSearchParams(location.search).get('q') ?? ''
    field.value = location.hash === '' ? asked : decodeURIComponent(location.hash.slice(1))
  } catch {
    field.value = ''
  }
  filter()
}
field.parentElement.hidden = false
field.addEventListener('input', () => {
  history.replaceState(null, '', location.pathname + '#' + encodeURIComponent(field.value))
  filter()
})
addEventListener('hashchange', readAddress)
readAddress()
`.trimStart()
