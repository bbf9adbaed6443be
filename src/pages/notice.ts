/** The message that a page shows for a name in its query; undefined for a name that the page does not know. */
export function findNotice(notices: Readonly<Record<string, string>>, name: string | undefined): string | undefined {
  return name !== undefined && Object.hasOwn(notices, name) ? notices[name] : undefined
}
