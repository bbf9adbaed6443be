/** The migrated database that most tests of stores clone. */
export const MIGRATED_TEMPLATE = 'signalbox_migrated'

/** The database as a start of the service leaves it, with an administrator: what tests of the whole service clone. */
export const PREPARED_TEMPLATE = 'signalbox_prepared'

/** `url` with another database. */
export function withDatabaseName(url: string, name: string): string {
  const changed = new URL(url)
  changed.pathname = `/${name}`
  return changed.href
}
