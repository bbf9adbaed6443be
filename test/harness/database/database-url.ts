/** A database that tests clone: every table without rows, or what a start of the service leaves, with an administrator. */
export type TemplateContent = 'migrated' | 'prepared'

/** The name of the template for a run on the server of `serverUrl`: runs with different databases share a server. */
export function nameTemplate(serverUrl: string, content: TemplateContent): string {
  return `${new URL(serverUrl).pathname.slice(1)}_${content}`
}

/** The name of the template whose clones are made as they were again: it keeps a copy of its rows. */
export function nameKeptTemplate(serverUrl: string, content: TemplateContent): string {
  return `${nameTemplate(serverUrl, content)}_kept`
}

/** Every template of a run. */
export function listTemplates(serverUrl: string): string[] {
  const contents: TemplateContent[] = ['migrated', 'prepared']
  return contents.flatMap((content) => [nameTemplate(serverUrl, content), nameKeptTemplate(serverUrl, content)])
}

/** `url` by the Unix-domain socket in `folder`, whose round trips take a fifth less work than those of TCP. */
export function withSocket(url: string, folder: string | undefined): string {
  if (folder === undefined) return url
  const changed = new URL(url)
  changed.searchParams.set('host', folder)
  return changed.href
}

/** `url` with another database. */
export function withDatabaseName(url: string, name: string): string {
  const changed = new URL(url)
  changed.pathname = `/${name}`
  return changed.href
}
