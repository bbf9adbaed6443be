/** Ids of messages that are remembered: more than a replay and the messages of its time can have. */
const SEEN_LIMIT = 2_000

/** Messages that may arrive while a replay is awaited. */
export const BUFFER_LIMIT = 1_000

/** The ids that the service accepts. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Up to where a page has the messages of a channel. */
export interface Position {
  /** The position of the last complete subscription, as the service named it. */
  since: string
  /** The id of the last message since. */
  after?: string
}

/** An event of a channel, with its data. */
export interface Arrival {
  event: string
  data: unknown
}

/** Answer of the service to a position. */
export interface Replay {
  missed: boolean
  messages: readonly { id: string; type: string | null }[]
}

/** Result of a new subscription: complete as it is, to be completed from a position, or impossible to complete. */
export type ResumeStep = { kind: 'complete' } | { kind: 'resume'; position: Position } | { kind: 'missed' }

/** The messages of one channel in their order, each once, over interruptions. Without time and without a connection. */
export interface ResumeMerge {
  /** Notes the position of an authorization; undefined where the service names none. */
  noteAuthorized(since: string | undefined): void
  /** The authorized subscription was made. After `resume`, arrivals are kept until `finish`. */
  begin(): ResumeStep
  /** Takes what arrived. Returns what is new, now; `full` when too much waits for the replay. */
  take(arrival: Arrival): Arrival[] | 'full'
  /** Ends `resume` with the answer; undefined: there is none. Returns what is new, and whether something is missing. */
  finish(replay: Replay | undefined): { arrivals: Arrival[]; missed: boolean }
  /** The connection was lost: the next subscription resumes from the same position. */
  interrupt(): void
  /** The access was lost: the next subscription resumes from nowhere. */
  forget(): void
}

/** Builds the order of a channel that was not joined yet. */
export function buildResumeMerge(): ResumeMerge {
  const seen = new Set<string>()
  let authorizedAt: string | undefined
  let position: Position | undefined
  let hasJoined = false
  let waiting: Arrival[] | undefined

  function restart(): void {
    hasJoined = true
    position = authorizedAt === undefined ? undefined : { since: authorizedAt }
  }

  /** The arrival, unless it is a message that was taken before. */
  function admit(arrival: Arrival): Arrival[] {
    const id = readMessageId(arrival)
    if (id === undefined) return [arrival]
    if (seen.has(id)) return []
    seen.add(id)
    for (const oldest of seen) {
      if (seen.size <= SEEN_LIMIT) break
      seen.delete(oldest)
    }
    if (position) position = { since: position.since, after: id }
    return [arrival]
  }

  return {
    noteAuthorized: (since) => {
      authorizedAt = since
    },
    begin: () => {
      waiting = undefined
      if (hasJoined && position && authorizedAt !== undefined) {
        waiting = []
        return { kind: 'resume', position }
      }
      const step = { kind: hasJoined ? 'missed' : 'complete' } as const
      restart()
      return step
    },
    take: (arrival) => {
      if (!waiting) return admit(arrival)
      waiting.push(arrival)
      return waiting.length > BUFFER_LIMIT ? 'full' : []
    },
    finish: (replay) => {
      const live = waiting ?? []
      waiting = undefined
      restart()
      const missed = !replay || replay.missed
      const replayed = missed ? [] : replay.messages.map((data) => ({ event: data.type ?? '', data }))
      return { arrivals: [...replayed, ...live].flatMap(admit), missed }
    },
    interrupt: () => {
      waiting = undefined
    },
    forget: () => {
      waiting = undefined
      position = undefined
    },
  }
}

/** The id of a message of the service; undefined for client events, and for what others publish. */
function readMessageId({ event, data }: Arrival): string | undefined {
  const { id, type, api_version: version } = (data ?? {}) as { id?: unknown; type?: unknown; api_version?: unknown }
  return typeof id === 'string' && UUID.test(id) && type === event && typeof version === 'string' ? id : undefined
}
