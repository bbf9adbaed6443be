/** A user who is present on a channel. */
export interface Member {
  /** The id of the user. */
  id: string
  /** The name of the user, if any. */
  name: string | null
  /** Since when the user is present, over all connections. ISO 8601, UTC, by the clock of the service. */
  since: string
}

/** The members of one presence channel, as the library reports them. */
export interface MemberList {
  read(): readonly Member[]
  onChange(listener: () => void): () => void
  /** Takes an event of the library; others are ignored. */
  take(event: string, data: unknown): void
  clear(): void
}

interface Reported {
  id?: unknown
  info?: unknown
}

/** Builds the list of a channel that was not joined yet: empty. */
export function buildMemberList(): MemberList {
  const listeners = new Set<() => void>()
  let members: readonly Member[] = []

  /** The one who is present longest is first. A list that is read twice is the same one until it changes. */
  function set(next: Iterable<Member>): void {
    members = [...next].sort((a, b) => compare(a.since, b.since) || compare(a.id, b.id))
    for (const listener of [...listeners]) listener()
  }

  return {
    read: () => members,
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    take: (event, data) => {
      if (event === 'pusher:subscription_succeeded') {
        const { members: known } = (data ?? {}) as { members?: Record<string, unknown> }
        set(Object.entries(known ?? {}).map(([id, info]) => readMember({ id, info })))
      } else if (event === 'pusher:member_added') {
        const added = readMember(data as Reported)
        set([...members.filter(({ id }) => id !== added.id), added])
      } else if (event === 'pusher:member_removed') {
        const { id: removed } = data as Reported
        set(members.filter(({ id }) => id !== removed))
      }
    },
    clear: () => {
      if (members.length > 0) set([])
    },
  }
}

/** A member by its id and what the service signed; without these it has no name, and is present since ever. */
function readMember({ id, info }: Reported): Member {
  const { name, since } = (info ?? {}) as { name?: unknown; since?: unknown }
  return {
    id: String(id),
    name: typeof name === 'string' ? name : null,
    since: typeof since === 'string' ? since : '1970-01-01T00:00:00.000Z',
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
