import { useRouterState } from '@tanstack/react-router'

declare module '@tanstack/react-router' {
  interface HistoryState {
    /** Whether a delivery was opened from a list, and stands beside it. */
    isBeside?: true
  }
}

/** State of a link that opens a delivery beside its list. */
export const BESIDE = { isBeside: true } as const

/** Whether what is opened stands beside its list: it was opened from there in this tab. */
export function useIsBeside(): boolean {
  return useRouterState({ select: ({ location }) => location.state.isBeside === true })
}
