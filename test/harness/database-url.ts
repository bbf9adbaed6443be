/** The migrated database that each test file clones. */
export const TEMPLATE_DATABASE = 'signalbox_template'

/** `url` with another database. */
export function withDatabaseName(url: string, name: string): string {
  const changed = new URL(url)
  changed.pathname = `/${name}`
  return changed.href
}
