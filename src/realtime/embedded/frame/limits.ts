/** Limits of the embedded server. Those of connections hold for each process. */
export interface RealtimeLimits {
  /** Open connections of all applications. Beyond: close 4100. */
  connections: number
  /** Open connections of one address (an IPv6 network of 64 bits counts as one). Beyond: close 4004. */
  connectionsPerAddress: number
  /** New connections of one address in a minute. Beyond: HTTP 429. */
  newConnectionsPerAddress: number
  /** Bytes of one message of a client. Beyond: close 1009. */
  messageBytes: number
  /** Messages a second of one connection, and how many may come at once. Beyond: close 4301. */
  messagesPerSecond: number
  messageBurst: number
  channelsPerConnection: number
  eventBytes: number
  clientEventsPerSecond: number
  /** Members of a presence channel, over all processes. */
  members: number
  /** Bytes of `channel_data` and of `user_data`. */
  memberBytes: number
  /** Bytes that wait for a client that does not read. Beyond: the connection is cut. */
  waitingBytes: number
  /** Silence after which the client pings, and a pause later the server. */
  activityTimeoutSeconds: number
  /** Wait for the pong of a client. Beyond: close 4201. */
  pongTimeoutSeconds: number
  /** Time in which a connection signs in or joins a channel that needs authorization; 0: no limit. Beyond: close 4009. */
  authorizeWithinSeconds: number
  /** Maximum number of cached channels of an application, and the lifetime of their last event. */
  cachedChannels: number
  cacheSeconds: number
}

const DEFAULT_LIMITS: RealtimeLimits = {
  connections: 5_000,
  connectionsPerAddress: 500,
  newConnectionsPerAddress: 600,
  messageBytes: 32 * 1024,
  messagesPerSecond: 50,
  messageBurst: 300,
  channelsPerConnection: 100,
  eventBytes: 10_240,
  clientEventsPerSecond: 10,
  members: 100,
  memberBytes: 2_048,
  waitingBytes: 1024 * 1024,
  activityTimeoutSeconds: 120,
  pongTimeoutSeconds: 30,
  authorizeWithinSeconds: 0,
  cachedChannels: 1_000,
  cacheSeconds: 1_800,
}

/** Growth of data as JSON within JSON: every character of an event escaped, and every quote of a member. */
const ESCAPED = { event: 6, member: 2 } as const

/** The limits with defaults: the buffer is at least twice the largest frame that the others allow. */
export function buildLimits(given: Partial<RealtimeLimits> = {}): RealtimeLimits {
  const limits = { ...DEFAULT_LIMITS, ...given }
  const { members, memberBytes, eventBytes } = limits
  const largest = Math.max(members * memberBytes * ESCAPED.member, eventBytes * ESCAPED.event)
  return { ...limits, waitingBytes: given.waitingBytes ?? Math.max(DEFAULT_LIMITS.waitingBytes, 2 * largest) }
}
