import { createContext, useContext, useEffect, useId, useSyncExternalStore } from 'react'
import { buildListeners } from './listeners.ts'

/** The dialog that a form stands in. A form of the page itself has none. */
export const DialogContext = createContext<string | undefined>(undefined)

/** The forms with entries that are not saved, each with its dialog. */
const unsaved = new Map<string, string | undefined>()

/** Takes the answer to whether the entries may go, while it is asked. */
let answerTo: ((mayGo: boolean) => void) | undefined
const listeners = buildListeners()

const listUnsaved = (dialog: string | undefined) =>
  [...unsaved].filter(([, of]) => dialog === undefined || of === dialog).map(([form]) => form)

/** Whether a form, of the page or of one dialog, has entries that are not saved. */
export const hasUnsaved = (dialog?: string): boolean => listUnsaved(dialog).length > 0

/** Says whether what calls it has entries, or shows a secret, that nobody has saved yet. */
export function useUnsaved(isUnsaved: boolean): void {
  const id = useId()
  const dialog = useContext(DialogContext)
  useEffect(() => {
    if (!isUnsaved) return
    unsaved.set(id, dialog)
    return () => void unsaved.delete(id)
  }, [id, dialog, isUnsaved])
}

/** Asks whether the entries of the page, or of one dialog, may go (`LeaveDialog`). A second question answers the first: no. */
export function askToLeave(dialog?: string): Promise<boolean> {
  answerTo?.(false)
  return new Promise((resolve) => {
    answerTo = (mayGo) => {
      answerTo = undefined
      listeners.tell()
      if (mayGo) for (const form of listUnsaved(dialog)) unsaved.delete(form)
      resolve(mayGo)
    }
    // Later, since the Escape that closes a dialog would answer the question too.
    setTimeout(listeners.tell)
  })
}

/** Whether the page asks if the entries may go. */
export const useIsAskedToLeave = (): boolean => useSyncExternalStore(listeners.subscribe, () => answerTo !== undefined)

/** Answers the question. */
export const answerLeaving = (mayGo: boolean): void => answerTo?.(mayGo)

/** Does what loses the entries of the page, or of one dialog; asks first where there are some. */
export async function leaveEntries(go: () => void, dialog?: string): Promise<void> {
  if (!hasUnsaved(dialog) || (await askToLeave(dialog))) go()
}

/** Lets the browser ask before it leaves a page with entries that are not saved. */
export function guardUnload(page: Window): void {
  page.addEventListener('beforeunload', (event) => {
    if (hasUnsaved()) event.preventDefault()
  })
}
