/**
 * Passes texts from each process of an installation to all others, at most once and in the order of their sender. It
 * keeps nothing: what is sent while a process is away does not reach it (docs/decisions/0064-realtime-over-nats.md).
 */
export interface Bus {
  /** Passes texts of `limitBytes()` at most on. Resolves when a server has them; rejects when some may not arrive. */
  send(texts: readonly string[]): Promise<void>
  /** Whether this process lately received what it sent itself. */
  isOpen(): boolean
  /** The longest text, in bytes of UTF-8. */
  limitBytes(): number
  /** Connects, and connects again after each loss, until stopped. Never throws. */
  run(): Promise<void>
  stop(): Promise<void>
}

/** Reports of a bus to its process. */
export interface BusCallbacks {
  onText: (text: string) => void
  /** Runs when the bus opens and when it closes. */
  onChange: (isOpen: boolean) => void
}

/** Makes the bus of a process. `id` is its id, of the characters `0-9a-f-`. */
export type OpenBus = (id: string, callbacks: BusCallbacks) => Bus
