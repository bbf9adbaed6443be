/** Requirement of a channel on subscribers; `user` is that of one signed-in user (`#server-to-user-<id>`). */
export type ChannelKind = 'public' | 'private' | 'presence' | 'encrypted' | 'user'

/** A valid channel name with the properties of its prefix. */
export interface ChannelName {
  name: string
  kind: ChannelKind
  /** Whether new subscribers receive the last event first. */
  isCache: boolean
  /** The user of a `user` channel. */
  userId?: string
}

/** Maximum length of a channel name, in characters. The client libraries send up to 200; the protocol allows 164. */
export const CHANNEL_NAME_LIMIT = 164

/** Longest user id, in characters. */
const USER_ID_LIMIT = 128

/** The whole name: signatures join names with `:`, so a name that contained one could imitate another signature. */
const NAME_PATTERN = /^[A-Za-z0-9_\-=@,.;]+$/

/** Of the channel of a signed-in user. */
export const USER_PREFIX = '#server-to-user-'

/** The longer prefix first. */
const PREFIXES: readonly { prefix: string; kind: ChannelKind; isCache: boolean }[] = [
  { prefix: 'private-encrypted-cache-', kind: 'encrypted', isCache: true },
  { prefix: 'private-encrypted-', kind: 'encrypted', isCache: false },
  { prefix: 'private-cache-', kind: 'private', isCache: true },
  { prefix: 'private-', kind: 'private', isCache: false },
  { prefix: 'presence-cache-', kind: 'presence', isCache: true },
  { prefix: 'presence-', kind: 'presence', isCache: false },
  { prefix: 'cache-', kind: 'public', isCache: true },
]

/** Reads a channel name; undefined for an invalid value. */
export function parseChannelName(name: unknown): ChannelName | undefined {
  if (typeof name !== 'string') return undefined
  if (name.startsWith(USER_PREFIX)) {
    const userId = name.slice(USER_PREFIX.length)
    return isUserId(userId) ? { name, kind: 'user', isCache: false, userId } : undefined
  }
  if (name.length > CHANNEL_NAME_LIMIT || !NAME_PATTERN.test(name)) return undefined
  const found = PREFIXES.find(({ prefix }) => name.startsWith(prefix))
  return found ? { name, kind: found.kind, isCache: found.isCache } : { name, kind: 'public', isCache: false }
}

/** Whether a value is a valid user id: 1 to 128 characters without control characters. */
export function isUserId(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= USER_ID_LIMIT && !/\p{Cc}/u.test(value)
}
