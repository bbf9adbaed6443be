import type { Bus, OpenBus } from '../../../src/carriage/bus/bus.ts'

/** A bus of a test: the processes of one program. Each may be cut off, as by a partition, and messages may vanish. */
export interface MemoryBus {
  open: OpenBus
  /** Whether what a process sends reaches another one; both may still receive what they send themselves. */
  connects: (from: string, to: string) => boolean
  /** Whether a process reaches the servers at all. */
  isUp: (id: string) => boolean
  limitBytes: number
  /** Closes or opens the bus of each process by `isUp`. */
  refresh(): void
}

/** Makes a bus in memory, to which all processes are connected. */
export function buildMemoryBus(): MemoryBus {
  const members = new Map<string, { take: (text: string) => void; refresh: () => void }>()
  const memory: MemoryBus = {
    connects: () => true,
    isUp: () => true,
    limitBytes: 1_000_000,
    refresh: () => {
      for (const { refresh } of members.values()) refresh()
    },
    open: (id, { onText, onChange }): Bus => {
      let isOpen = false
      const refresh = () => {
        if (isOpen === memory.isUp(id)) return
        isOpen = !isOpen
        onChange(isOpen)
      }
      return {
        isOpen: () => isOpen,
        limitBytes: () => memory.limitBytes,
        send: async (texts) => {
          if (!isOpen) throw new Error('the bus is not open')
          for (const text of texts)
            for (const [to, { take }] of members)
              if (to !== id && memory.isUp(to) && memory.connects(id, to)) queueMicrotask(() => take(text))
        },
        run: async () => {
          members.set(id, { take: onText, refresh })
          refresh()
        },
        stop: async () => {
          members.delete(id)
          isOpen = false
        },
      }
    },
  }
  return memory
}
