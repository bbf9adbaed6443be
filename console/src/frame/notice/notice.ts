import { useSyncExternalStore } from 'react'
import { buildListeners } from '../listeners.ts'

/** Result of a change, with what takes it back. */
export interface Notice {
  text: string
  /** Makes the state from before the change. Left out where nothing is left to take back. */
  undo?: () => Promise<unknown>
}

let shown: Notice | undefined
const listeners = buildListeners()

/** Shows a notice in the place of the one before; undefined hides it. */
export function showNotice(notice: Notice | undefined): void {
  shown = notice
  listeners.tell()
}

/** The notice that is shown. */
export const useNotice = (): Notice | undefined => useSyncExternalStore(listeners.subscribe, () => shown)
