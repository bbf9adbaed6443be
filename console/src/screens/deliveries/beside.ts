import { useRouterState } from '@tanstack/react-router'

declare module '@tanstack/react-router' {
  interface HistoryState {
    /** Whether a delivery was opened from a list, and stands beside it. */
    isBeside?: true
    /** Whether that list is not where the user came from. */
    isFromElsewhere?: true
  }
}

/** State of a link that opens a delivery beside its list. */
export const BESIDE = { isBeside: true } as const

/** State of a link that opens it beside its list from another screen, to which its end leads back. */
export const BESIDE_OTHER = { isBeside: true, isFromElsewhere: true } as const

/** Whether what is opened stands beside its list: it was opened from there in this tab. */
export function useIsBeside(): boolean {
  return useRouterState({ select: ({ location }) => location.state.isBeside === true })
}

/** State of a link to another one beside the same list. Pure. */
export const keepBeside = ({ isFromElsewhere }: { isFromElsewhere?: true }) => (isFromElsewhere ? BESIDE_OTHER : BESIDE)
