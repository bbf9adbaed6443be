/** Those who follow a value that a module keeps, as `useSyncExternalStore` takes them. */
export interface Listeners {
  /** Adds one. Returns what removes it. */
  subscribe(listener: () => void): () => void
  /** Tells all that the value has changed. */
  tell(): void
}

/** Builds the listeners of a value. */
export function buildListeners(): Listeners {
  const listeners = new Set<() => void>()
  return {
    subscribe: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    tell: () => {
      for (const listener of listeners) listener()
    },
  }
}
