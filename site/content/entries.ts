import type { CatalogueEntry } from '../../src/event/catalogue/catalogue.ts'
import { buildExample } from '../../src/event/catalogue/example.ts'
import { findDescription, type Page, rewriteLinks, type Source, splitTitle } from './markdown.ts'

interface Options {
  base: string
  sources: readonly Source[]
}

/** One page for each section of `docs/errors.md`, and one that lists them. Pure. */
export function buildErrorPages(text: string, { base, sources }: Options): Page[] {
  const { title, body } = splitTitle(text, 'docs/errors.md')
  const [intro = '', ...sections] = body.split(/^## /m)
  const file = 'docs/errors.md'
  const pages = sections.map((section): Page => {
    const [heading = '', ...lines] = section.split('\n')
    const code = heading.replaceAll('`', '').trim()
    const body = rewriteLinks(lines.join('\n').trim(), { file, base, sources })
    const meaning = lines.join('\n').replace(/^\s*\*\*What it means\.\*\* /, '')
    return { path: `errors/${code}`, title: code, description: findDescription(meaning), body }
  })
  const rows = pages.map(
    ({ path, title, description }) => `| [\`${title}\`](${base}/${path}/) | ${cell(description)} |`,
  )
  const list = ['| Code | Meaning |', '|---|---|', ...rows].join('\n')
  const overview = `${rewriteLinks(intro.trim(), { file, base, sources })}\n\n${list}`
  return [{ path: 'errors', title, description: findDescription(intro), body: overview }, ...pages]
}

/** One page for each event type, and one that lists them by resource. `operationOf` finds the page of a route. Pure. */
export function buildEventPages(
  entries: readonly CatalogueEntry[],
  { base, operationOf }: { base: string; operationOf: (method: string, route: string) => string | undefined },
): Page[] {
  const pages = entries.map((entry): Page => {
    const { internal, account_scope, read_path, deprecated_at, deprecation_remedy } = entry
    const operation = entry.method && entry.route ? operationOf(entry.method, entry.route) : undefined
    const producer = entry.route ? `\`${entry.method} ${entry.route}\`` : 'The service itself'
    const body = [
      `${entry.description}.`,
      ...(deprecated_at ? ['', `**Deprecated since ${deprecated_at}.** ${deprecation_remedy ?? ''}`.trim()] : []),
      '',
      '| Fact | Value |',
      '|---|---|',
      `| Produced by | ${operation ? `[${producer}](${base}/${operation}/)` : producer} |`,
      `| Group | ${entry.group} |`,
      `| Account | ${entry.account_scope === 'account' ? 'The account that owns the resource. Its webhooks and the global ones get it.' : 'None. Global webhooks only get it.'} |`,
      `| Subscribe | \`"events": ["${entry.internal}"]\` of [a webhook](${base}/contract/webhooks/) |`,
      '',
      '## Body',
      '',
      'A notification is thin: it has identifiers, and the receiver reads the current state from the API.',
      '',
      '```json',
      JSON.stringify(buildExample({ internal, accountScope: account_scope, readPath: read_path }), null, 2),
      '```',
      '',
      `[The envelope](${base}/contract/webhooks/#envelope) states each member. A delivery may repeat: deduplicate on \`id\`.`,
    ]
    return {
      path: `events/${entry.internal}`,
      title: entry.internal,
      description: `${entry.description}.`,
      body: body.join('\n'),
    }
  })
  const resources = Map.groupBy(entries, ({ internal }) => internal.split('.')[0] ?? '')
  const sections = [...resources].map(([resource, own]) =>
    [
      `## ${resource}`,
      '',
      '| Event type | When |',
      '|---|---|',
      ...own.map(
        (entry) => `| [\`${entry.internal}\`](${base}/events/${entry.internal}/) | ${cell(entry.description)} |`,
      ),
    ].join('\n'),
  )
  const intro =
    'Every operation of the API that succeeds emits the event named after its resource and action, once for each resource ' +
    'it changed. Events of reads are recorded only while an active webhook subscribes to them.'
  return [{ path: 'events', title: 'Events', description: intro, body: [intro, ...sections].join('\n\n') }, ...pages]
}

/** Text for a cell of a table. Pure. */
const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
