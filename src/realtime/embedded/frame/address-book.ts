const WINDOW_MS = 60_000

interface Entry {
  open: number
  windowStartMs: number
  hits: number
}

/** Counts of each address in this process: open connections, and those opened in the current minute. */
export interface AddressBook {
  /** Counts a hit, and returns the hits of this minute. */
  hit(address: string, nowMs: number): number
  /** Adds to the open ones. */
  open(address: string): void
  close(address: string): void
  countOpen(address: string): number
  /** Removes addresses without open connections and with an ended minute. */
  sweep(nowMs: number): void
}

/** Builds an empty book. */
export function buildAddressBook(): AddressBook {
  const entries = new Map<string, Entry>()
  const find = (address: string): Entry => {
    const known = entries.get(address)
    if (known) return known
    const entry = { open: 0, windowStartMs: 0, hits: 0 }
    entries.set(address, entry)
    return entry
  }
  const isCurrent = (entry: Entry, nowMs: number) => Math.abs(nowMs - entry.windowStartMs) < WINDOW_MS
  return {
    hit: (address, nowMs) => {
      const entry = find(address)
      if (!isCurrent(entry, nowMs)) {
        entry.windowStartMs = nowMs
        entry.hits = 0
      }
      entry.hits += 1
      return entry.hits
    },
    open: (address) => {
      find(address).open += 1
    },
    close: (address) => {
      find(address).open -= 1
    },
    countOpen: (address) => entries.get(address)?.open ?? 0,
    sweep: (nowMs) => {
      for (const [address, entry] of entries) if (entry.open <= 0 && !isCurrent(entry, nowMs)) entries.delete(address)
    },
  }
}
