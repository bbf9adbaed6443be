import { posix } from 'node:path'

/** A page of the site. */
export interface Page {
  /** Path of the page below the root of the site without slashes around it, such as `guides/webhooks`; empty for the start. */
  path: string
  title: string
  /** One sentence for search engines and `llms.txt`; empty when there is none. */
  description: string
  /** Markdown without its first heading. */
  body: string
  /** The body for programs, where `body` has components of the site. */
  plain?: string
  /** Members of the front matter beside title and description, as YAML lines. */
  extra?: readonly string[]
}

/** The document behind a page, for links from other documents: paths are relative to the repository. */
export interface Source {
  file: string
  page: string
}

/** Splits a document at its first heading. Throws for one without: every page needs a title. Pure. */
export function splitTitle(text: string, file: string): { title: string; body: string } {
  const [, title, body] = /^# (.+)\n([\s\S]*)$/.exec(text) ?? []
  if (title === undefined || body === undefined) throw new Error(`${file}: begin with a heading: "# Title".`)
  return { title: title.replaceAll('`', ''), body: body.trimStart() }
}

/** The first paragraph of prose as plain text, up to its first sentence that ends. Pure. */
export function findDescription(body: string): string {
  const paragraph = body.split(/\n{2,}/).find((part) => /^[A-Z*[]|^`[^`]/.test(part)) ?? ''
  const plain = paragraph
    .replaceAll('\n', ' ')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
  return (/^.*?[.:](?= |$)/.exec(plain)?.[0] ?? plain).replace(/:$/, '.')
}

const FENCE = /(^```[\s\S]*?^```$)/m

/**
 * Rewrites the links of a document for its page: those to a document become those to its page, pictures are copied below
 * `/files/`, an error of the service leads to its own page. What has no page is named without a link. Code is left
 * alone. Pure.
 */
export function rewriteLinks(
  body: string,
  { file, base, sources }: { file: string; base: string; sources: readonly Source[] },
): string {
  const pages = new Map(sources.map(({ file, page }) => [file, page]))
  const rewrite = (text: string, isImage: boolean, target: string): string => {
    const link = (to: string) => `${isImage ? '!' : ''}[${text}](${to})`
    if (/^[a-z]+:/.test(target) || target.startsWith('#')) return link(target)
    const [path = '', anchor] = target.split('#')
    const suffix = anchor ? `#${anchor}` : ''
    if (path.startsWith('/docs/errors/')) return link(`${base}/errors/${path.slice('/docs/errors/'.length)}/`)
    const found = posix.normalize(posix.join(posix.dirname(file), path)).replace(/\/$/, '')
    if (isImage) return link(`${base}/files/${found}`)
    if (found === 'docs/errors.md' && anchor) return link(`${base}/errors/${anchor}/`)
    const page = pages.get(found) ?? pages.get(`${found}/README.md`)
    return page === undefined ? text : link(`${base}/${page === '' ? '' : `${page}/`}${suffix}`)
  }
  return body
    .split(FENCE)
    .map((part) =>
      part.startsWith('```')
        ? part
        : part.replaceAll(/(!?)\[((?:[^\][]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, (_all, mark, text, target) =>
            rewrite(text, mark === '!', target),
          ),
    )
    .join('')
}

/** The pictures that a document shows, as paths relative to the repository. Pure. */
export function listPictures(body: string, file: string): string[] {
  return [...body.matchAll(/!\[[^\]]*\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => posix.normalize(posix.join(posix.dirname(file), target)))
}

/** The file of a page, with its front matter. Pure. */
export function renderPage({ title, description, body, extra = [] }: Page): string {
  const matter = [
    `title: ${JSON.stringify(title)}`,
    ...(description ? [`description: ${JSON.stringify(description)}`] : []),
    ...extra,
  ]
  return `---\n${matter.join('\n')}\n---\n\n${body.trimEnd()}\n`
}
