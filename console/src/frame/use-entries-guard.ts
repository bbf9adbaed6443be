import { type ShouldBlockFn, useBlocker } from '@tanstack/react-router'
import { askToLeave, hasUnsaved } from './unsaved.ts'

const tabOf = (search: object): unknown => ('tab' in search ? search.tab : undefined)

const keepsEntries: ShouldBlockFn = async ({ current, next }) =>
  hasUnsaved() &&
  (current.pathname !== next.pathname || tabOf(current.search) !== tabOf(next.search)) &&
  !(await askToLeave())

/** Asks before another screen, or another tab of this one, drops entries that are not saved. */
export function useEntriesGuard(): void {
  useBlocker({ shouldBlockFn: keepsEntries, enableBeforeUnload: hasUnsaved })
}
