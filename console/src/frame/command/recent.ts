/** A page of one thing that was opened. */
export interface RecentItem {
  path: string
  title: string
}

const KEY = 'signalbox-console-recent'

const LIMIT = 6

/** Names of users stand in titles: they end with the tab. */
export function listRecent(): RecentItem[] {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? '[]') as RecentItem[]
  } catch {
    return []
  }
}

/** Puts a page at the head of the list. Pure. */
export function addRecent(items: readonly RecentItem[], item: RecentItem): RecentItem[] {
  return [item, ...items.filter(({ path }) => path !== item.path)].slice(0, LIMIT)
}

/** Whether a path is that of one thing: its last part is an id. */
export const isOfOne = (path: string) => /\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(path)

/** Keeps a page until the tab is closed. */
export function keepRecent(item: RecentItem): void {
  sessionStorage.setItem(KEY, JSON.stringify(addRecent(listRecent(), item)))
}
