import { type HistoryState, useRouter } from '@tanstack/react-router'
import { type MouseEvent, useCallback } from 'react'

/**
 * Follows the plain links inside an element within the console, as its link components do. A list of many rows has plain links,
 * since a component for each of them costs more than the rest of the row. `stateOf`: the state that a link gives its entry of
 * the history.
 */
export function useFollowedLinks(
  stateOf?: (link: HTMLAnchorElement) => HistoryState | undefined,
): (event: MouseEvent) => void {
  const { history } = useRouter()
  return useCallback(
    (event) => {
      const link = event.target instanceof Element ? event.target.closest('a') : null
      const isForBrowser = event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey
      if (!link || isForBrowser || event.defaultPrevented) return
      event.preventDefault()
      history.push(`${link.pathname}${link.search}`, stateOf?.(link))
    },
    [history, stateOf],
  )
}
