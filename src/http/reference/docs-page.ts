import { escapeHtml } from '../../base/html.ts'

/** Renders the subset of Markdown of our texts: `code`, **bold** and [links](/path) within this site. */
export function renderInline(text: string): string {
  const pattern = /`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\((\/(?!\/)[\w/.#-]*)\)/g
  let html = ''
  let at = 0
  for (const match of text.matchAll(pattern)) {
    html += escapeHtml(text.slice(at, match.index))
    const [whole, code, bold, label, path] = match
    if (code !== undefined) html += `<code>${escapeHtml(code)}</code>`
    else if (bold !== undefined) html += `<strong>${escapeHtml(bold)}</strong>`
    else html += `<a href="${escapeHtml(path ?? '')}">${escapeHtml(label ?? '')}</a>`
    at = match.index + whole.length
  }
  return html + escapeHtml(text.slice(at))
}

/** Renders paragraphs, lists (`- `) and tables (`|`), separated by empty lines. */
export function renderText(text: string): string {
  return text
    .split(/\n{2,}/)
    .map((block) => block.trim())
    .filter((block) => block !== '')
    .map((block) => {
      const lines = block.split('\n')
      if (lines.every((line) => line.startsWith('|'))) return renderTable(lines)
      if (!lines.every((line) => /^(- | {2})/.test(line))) return `<p>${renderInline(lines.join(' '))}</p>`
      const items = block.slice(2).split(/\n- /)
      return `<ul>${items.map((item) => `<li>${renderInline(item.replace(/\s+/g, ' '))}</li>`).join('')}</ul>`
    })
    .join('\n')
}

function renderTable([head = '', , ...rows]: readonly string[]): string {
  const renderRow = (line: string, tag: 'th' | 'td') => {
    const cells = line.split('|').slice(1, -1)
    return `<tr>${cells.map((cell) => `<${tag}>${renderInline(cell.trim())}</${tag}>`).join('')}</tr>`
  }
  const body = rows.map((row) => renderRow(row, 'td')).join('')
  return `<table><thead>${renderRow(head, 'th')}</thead><tbody>${body}</tbody></table>`
}

/** Path of the documentation site, where an installation has it (`src/operations/site`); without a slash at its end. */
export const SITE_PATH = '/docs/site'

/** One link of the navigation. */
export interface PageLink {
  path: string
  label: string
}

/** A whole page. `main` is HTML; all else is text. */
export function buildPageHtml(page: {
  title: string
  path: string
  links: readonly PageLink[]
  main: string
  /** The path of a script of the page. */
  script?: string
}): string {
  const items = page.links.map(({ path, label }) => {
    const current = path === page.path ? ' aria-current="page"' : ''
    return `<li><a href="${escapeHtml(path)}"${current}>${escapeHtml(label)}</a></li>`
  })
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(page.title)} · Signalbox</title>
<link rel="stylesheet" href="/docs/style.css">
${page.script === undefined ? '' : `<script src="${escapeHtml(page.script)}" defer></script>\n`}</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header><a href="/docs">Signalbox</a> <span>API reference</span> <a class="find" href="/docs/search">Search</a></header>
<div class="columns">
<nav aria-label="Reference"><ul>${items.join('')}</ul></nav>
<main id="main" tabindex="-1">
${page.main}
</main>
</div>
</body>
</html>
`
}

/** Pages of the reference load only our own style sheet, and that of the search its script. */
export const DOCS_CSP =
  "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

export const SEARCH_CSP = `${DOCS_CSP}; script-src 'self'`

/** The style of all pages. Light or dark by the reader's system; no fonts or images. */
export const DOCS_STYLE = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#ffffff, #14171c);
  --raised: light-dark(#f5f6f8, #1d2128);
  --line: light-dark(#d9dde3, #343b46);
  --text: light-dark(#1a1e24, #e6e9ee);
  --quiet: light-dark(#545c68, #a5aebb);
  --accent: light-dark(#0b57d0, #8ab4ff);
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); font: 1rem/1.6 system-ui, sans-serif; overflow-wrap: anywhere; }
a { color: var(--accent); text-underline-offset: 0.2em; }
a:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
main:focus { outline: none; }
code, .method { font-family: ui-monospace, 'SF Mono', Menlo, Consolas, monospace; font-size: 0.9em; }
p code, li code, dd code, td code { background: var(--raised); border-radius: 4px; padding: 0.1em 0.3em; }
.skip { position: absolute; left: -100vw; background: var(--ground); padding: 0.75rem 1rem; z-index: 1; }
.skip:focus { left: 0; }
header { border-bottom: 1px solid var(--line); padding: 0.9rem max(1.5rem, calc((100vw - 76rem) / 2 + 1.5rem)); }
header a { color: var(--text); font-weight: 700; text-decoration: none; }
header span { color: var(--quiet); margin-left: 0.5rem; }
header a.find { float: right; color: var(--accent); font-weight: 400; text-decoration: underline; }
.search input { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--quiet); border-radius: 6px; padding: 0.4rem 0.6rem; width: 100%; }
.search input:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.index { padding-left: 1.1rem; }
.columns { display: grid; max-width: 76rem; margin: 0 auto; }
nav { padding: 1rem 1.5rem 0; }
nav ul { list-style: none; margin: 0 -0.6rem; padding: 0; display: flex; flex-wrap: wrap; gap: 0.25rem 0.5rem; }
nav a { display: block; padding: 0.25rem 0.6rem; border-radius: 6px; text-decoration: none; }
nav a:hover { background: var(--raised); }
nav a[aria-current] { background: var(--raised); color: var(--text); font-weight: 600; }
main { padding: 1rem 1.5rem 4rem; min-width: 0; max-width: 52rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0.5rem 0 1rem; }
h2 { font-size: 1.25rem; line-height: 1.35; margin: 2.5rem 0 0.5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 0.25rem; }
section.operation { border-top: 1px solid var(--line); margin-top: 2.5rem; }
section.operation h2 { margin-top: 1.5rem; }
.call { background: var(--raised); border: 1px solid var(--line); border-radius: 8px; padding: 0.6rem 0.8rem; margin: 0.75rem 0; }
.call code { font-size: 0.95em; }
.method { font-weight: 700; margin-right: 0.6rem; }
.quiet { color: var(--quiet); }
dl { margin: 0.25rem 0 1rem; }
dl > div { border-top: 1px solid var(--line); padding: 0.5rem 0; }
dt code { font-weight: 600; }
dt span { color: var(--quiet); font-size: 0.9rem; margin-left: 0.5rem; }
dd { margin: 0; }
dd p { margin: 0.15rem 0; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { border-top: 1px solid var(--line); padding: 0.4rem 0.6rem 0.4rem 0; text-align: start; vertical-align: top; }
.contents { columns: 18rem; column-gap: 2.5rem; padding-left: 1.1rem; }
@media (min-width: 60rem) {
  .columns { grid-template-columns: 14rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto; padding-top: 1.5rem; }
  nav ul { flex-direction: column; }
  main { padding-left: 2rem; }
}
`.trimStart()
