import type { ChannelName } from '../frame/channel-name.ts'
import type { Member } from '../frame/server-frame.ts'

/** Effect of a change of subscriptions on a channel, over all processes. */
export type Transition =
  | { kind: 'occupied' | 'vacated'; channel: ChannelName }
  | { kind: 'member_added'; channel: ChannelName; member: Member }
  | { kind: 'member_removed'; channel: ChannelName; userId: string }

/** Report of a process on its part of a channel. Counts are totals, so a repeated report changes nothing. */
export interface ChannelShare {
  /** Name. */
  c: string
  /** Connections. */
  n: number
  /** Members: user id, connections of this user, info. All of them in a whole state, the changed ones otherwise. */
  m?: [id: string, count: number, info: unknown][]
}

interface MemberState {
  info: unknown
  /** Local connections of the user. */
  local: number
  /** Connections of the user by process. */
  remote: Map<string, number>
}

interface ChannelState<Socket> {
  name: ChannelName
  /** Local connections, and the user that each is as a member. */
  subscribers: Map<Socket, string | undefined>
  members: Map<string, MemberState>
  /** Connections by process. */
  remote: Map<string, number>
}

/** The channels of one application: the subscriptions of this process, and the shares of the others. */
export interface ChannelRegistry<Socket> {
  join(channel: ChannelName, socket: Socket, member?: Member): Transition[]
  leave(channel: string, socket: Socket): Transition[]
  /** Sets the share of another process in a channel. `parse` reads its name. */
  setShare(process: string, channel: ChannelName, share: ChannelShare): Transition[]
  /** Removes the shares of another process. */
  dropProcess(process: string): Transition[]
  /** The local subscribers, and the user that each is as a member; undefined for a channel without. */
  subscribersOf(channel: string): ReadonlyMap<Socket, string | undefined> | undefined
  membersOf(channel: string): Member[]
  countMembers(channel: string): number
  hasMember(channel: string, userId: string): boolean
  countConnections(channel: string): number
  list(): ChannelName[]
  /** The share of this process: of all members, or of these. */
  shareOf(channel: string, userIds?: Iterable<string>): ChannelShare
  shares(): ChannelShare[]
  /** The shares of another process, as they were set. */
  sharesOf(process: string): ChannelShare[]
}

/** Builds the registry of an application, in memory: each call takes what happened and returns the transitions. */
export function buildChannelRegistry<Socket>(): ChannelRegistry<Socket> {
  const channels = new Map<string, ChannelState<Socket>>()

  function open(name: ChannelName, transitions: Transition[]): ChannelState<Socket> {
    const known = channels.get(name.name)
    if (known) return known
    const opened = { name, subscribers: new Map(), members: new Map(), remote: new Map() }
    channels.set(name.name, opened)
    transitions.push({ kind: 'occupied', channel: name })
    return opened
  }

  function closeIfEmpty(state: ChannelState<Socket>, transitions: Transition[]): void {
    if (state.subscribers.size > 0 || state.remote.size > 0) return
    channels.delete(state.name.name)
    transitions.push({ kind: 'vacated', channel: state.name })
  }

  function setShare(process: string, channel: ChannelName, share: ChannelShare): Transition[] {
    const transitions: Transition[] = []
    if (share.n <= 0 && !channels.has(channel.name)) return transitions
    const state = open(channel, transitions)
    if (share.n > 0) state.remote.set(process, share.n)
    else state.remote.delete(process)
    for (const [id, count, info] of share.m ?? [])
      setMember(state, { member: { id, info }, process, count }, transitions)
    if (share.n <= 0) dropMembers(state, process, transitions)
    closeIfEmpty(state, transitions)
    return transitions
  }

  function shareOf(channel: string, userIds?: Iterable<string>): ChannelShare {
    const state = channels.get(channel)
    const share: ChannelShare = { c: channel, n: state?.subscribers.size ?? 0 }
    const members = [...(userIds ?? localMembers(state))].map((id): [string, number, unknown] => {
      const entry = state?.members.get(id)
      return [id, entry?.local ?? 0, entry?.info ?? null]
    })
    return members.length > 0 ? { ...share, m: members } : share
  }

  return {
    join: (channel, socket, member) => {
      const transitions: Transition[] = []
      const state = open(channel, transitions)
      state.subscribers.set(socket, member?.id)
      if (member) {
        const count = (state.members.get(member.id)?.local ?? 0) + 1
        setMember(state, { member, process: undefined, count }, transitions)
      }
      return transitions
    },
    leave: (channel, socket) => {
      const transitions: Transition[] = []
      const state = channels.get(channel)
      if (!state?.subscribers.has(socket)) return transitions
      const id = state.subscribers.get(socket)
      state.subscribers.delete(socket)
      const entry = id === undefined ? undefined : state.members.get(id)
      if (id !== undefined && entry)
        setMember(state, { member: { id, info: entry.info }, process: undefined, count: entry.local - 1 }, transitions)
      closeIfEmpty(state, transitions)
      return transitions
    },
    setShare,
    dropProcess: (process) => {
      const transitions: Transition[] = []
      for (const state of [...channels.values()]) {
        if (!state.remote.delete(process)) continue
        dropMembers(state, process, transitions)
        closeIfEmpty(state, transitions)
      }
      return transitions
    },
    subscribersOf: (channel) => channels.get(channel)?.subscribers,
    membersOf: (channel) => [...(channels.get(channel)?.members ?? [])].map(([id, { info }]) => ({ id, info })),
    countMembers: (channel) => channels.get(channel)?.members.size ?? 0,
    hasMember: (channel, userId) => channels.get(channel)?.members.has(userId) ?? false,
    countConnections: (channel) => {
      const state = channels.get(channel)
      if (!state) return 0
      let total = state.subscribers.size
      for (const count of state.remote.values()) total += count
      return total
    },
    list: () => [...channels.values()].map(({ name }) => name),
    shareOf,
    shares: () =>
      [...channels.values()].filter(({ subscribers }) => subscribers.size > 0).map(({ name }) => shareOf(name.name)),
    sharesOf: (process) =>
      [...channels.values()].flatMap(({ name, remote, members }) => {
        const n = remote.get(process)
        if (n === undefined) return []
        const m = [...members].flatMap(([id, { info, remote: counts }]): [string, number, unknown][] => {
          const count = counts.get(process)
          return count === undefined ? [] : [[id, count, info]]
        })
        return [{ c: name.name, n, m }]
      }),
  }
}

interface MemberChange {
  member: Member
  /** Undefined: this process. */
  process: string | undefined
  count: number
}

function* localMembers<Socket>(state: ChannelState<Socket> | undefined): Iterable<string> {
  for (const [id, { local }] of state?.members ?? []) if (local > 0) yield id
}

/** Sets the connections of a user in this process or another one. */
function setMember(state: ChannelState<unknown>, change: MemberChange, transitions: Transition[]): void {
  const { member, process, count } = change
  const known = state.members.get(member.id)
  const entry = known ?? { info: member.info, local: 0, remote: new Map<string, number>() }
  if (process === undefined) entry.local = count
  else if (count > 0) entry.remote.set(process, count)
  else entry.remote.delete(process)
  const isPresent = entry.local > 0 || entry.remote.size > 0
  if (isPresent && !known) {
    state.members.set(member.id, entry)
    transitions.push({ kind: 'member_added', channel: state.name, member })
  } else if (!isPresent && known) {
    state.members.delete(member.id)
    transitions.push({ kind: 'member_removed', channel: state.name, userId: member.id })
  }
}

/** Ends the members that a channel has by another process. */
function dropMembers(state: ChannelState<unknown>, process: string, transitions: Transition[]): void {
  for (const [id, { info, remote }] of state.members)
    if (remote.has(process)) setMember(state, { member: { id, info }, process, count: 0 }, transitions)
}
