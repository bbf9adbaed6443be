/** Action of a single key, and the key for it unless this browser has chosen another. */
export const DEFAULT_KEYS = {
  search: '/',
  go: 'g',
  next: 'j',
  previous: 'k',
  'neighbour-next': ']',
  'neighbour-previous': '[',
  replay: 'r',
  newest: 't',
  list: '?',
} as const

export type ShortcutName = keyof typeof DEFAULT_KEYS

/** The key of each shortcut, as `KeyboardEvent.key` names it. */
export type ShortcutKeys = Readonly<Record<ShortcutName, string>>

export const SHORTCUT_NAMES = Object.keys(DEFAULT_KEYS) as ShortcutName[]

/** Whether a text is one visible character, which a key may write. Pure. */
export function isKey(text: unknown): text is string {
  return typeof text === 'string' && /^[^\p{Z}\p{C}]$/u.test(text)
}

/** The shortcut with this key; undefined for another key. Pure. */
export function findShortcut(keys: ShortcutKeys, key: string): ShortcutName | undefined {
  return SHORTCUT_NAMES.find((name) => keys[name] === key)
}

/** Reads stored keys: what is no key gets the default, and all do if two shortcuts would have the same. Pure. */
export function readKeys(given: unknown): ShortcutKeys {
  const stored = typeof given === 'object' && given !== null ? (given as Readonly<Record<string, unknown>>) : {}
  const keys = Object.fromEntries(
    SHORTCUT_NAMES.map((name) => [name, isKey(stored[name]) ? stored[name] : DEFAULT_KEYS[name]]),
  ) as Record<ShortcutName, string>
  return new Set(Object.values(keys)).size === SHORTCUT_NAMES.length ? keys : DEFAULT_KEYS
}
