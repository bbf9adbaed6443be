/** The migrated database, which most store tests clone. */
export const MIGRATED_TEMPLATE = 'signalbox_migrated'

/** The database after a start of the service, with an administrator, which tests of the whole service clone. */
export const PREPARED_TEMPLATE = 'signalbox_prepared'

/** `url` with another database. */
export function withDatabaseName(url: string, name: string): string {
  const changed = new URL(url)
  changed.pathname = `/${name}`
  return changed.href
}
