import { useSyncExternalStore } from 'react'

/** What a change came to, with what takes it back. */
export interface Notice {
  text: string
  /** Makes the state from before the change. Left out where nothing is left to take back. */
  undo?: () => Promise<unknown>
}

let shown: Notice | undefined
const listeners = new Set<() => void>()

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Shows a notice in the place of the one before; undefined hides it. */
export function showNotice(notice: Notice | undefined): void {
  shown = notice
  for (const listener of listeners) listener()
}

/** The notice that is shown. */
export const useNotice = (): Notice | undefined => useSyncExternalStore(subscribe, () => shown)
