import { groupAddress, listNetworks } from '../request/address-group.ts'

/** A connection that counts for its address. */
export interface SharedConnection {
  address: string
  isIdle(): boolean
  close(): void
}

/** Maximum fraction of all connections for one address: a quarter. */
const ADDRESS_SHARE = 4

/** From this share of all connections on, a new one takes the place of an idle one. */
const CROWDED_SHARE = 0.9

/** Minimum limit of connections for an address, whatever the total limit. */
const ADDRESS_MIN = 32

/**
 * Shares the connections of a process between addresses (docs/contract/api.md#connections): an IPv4 address or a /64
 * has a quarter at most. Beyond that, a new one closes its oldest connection without a request, or is refused. When
 * nearly all connections are in use, a new one closes the oldest idle one of the network (/24, /48) with the most.
 */
export function buildConnectionShares(options: { limit: number; isTrusted: (address: string) => boolean }) {
  const { limit, isTrusted } = options
  const perAddress = Math.max(ADDRESS_MIN, Math.floor(limit / ADDRESS_SHARE))
  const byAddress = new Map<string, Set<SharedConnection>>()
  const byNetwork = new Map<string, Set<SharedConnection>>()
  let count = 0

  const groupsOf = ({ address }: SharedConnection) =>
    [
      [byAddress, groupAddress(address)],
      [byNetwork, listNetworks(address).at(-1) ?? address],
    ] as const

  function drop(connection: SharedConnection): void {
    let isKnown = false
    for (const [map, name] of groupsOf(connection)) {
      const group = map.get(name)
      isKnown = group?.delete(connection) ?? false
      if (group?.size === 0) map.delete(name)
    }
    if (isKnown) count -= 1
  }

  /** Closes the oldest connection without a request; false when each has one. */
  function closeIdle(group: ReadonlySet<SharedConnection>): boolean {
    for (const member of group) {
      if (!member.isIdle()) continue
      drop(member)
      member.close()
      return true
    }
    return false
  }

  function makeRoom(): void {
    const groups = [...byNetwork.values()].sort((a, b) => b.size - a.size)
    for (const group of groups) if (closeIdle(group)) return
  }

  return {
    /** Counts a new connection; false when it has to be refused. */
    add: (connection: SharedConnection): boolean => {
      const own = byAddress.get(groupAddress(connection.address))
      if (own && own.size >= perAddress && !isTrusted(connection.address) && !closeIdle(own)) return false
      if (count >= limit * CROWDED_SHARE) makeRoom()
      for (const [map, name] of groupsOf(connection)) {
        const group = map.get(name) ?? new Set()
        group.add(connection)
        map.set(name, group)
      }
      count += 1
      return true
    },
    /** Forgets a connection that has ended or was upgraded. */
    drop,
  }
}
