import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query'
import { type Notice, showNotice } from './notice/notice.ts'

/**
 * A change over the API. `onDone` runs, and then what the change touches is read again: a screen that leaves what it deleted
 * returns its navigation, so that nothing asks for it any more. `notice` says what the change came to; it offers to take back
 * what the API can restore exactly, and nothing else.
 */
export function useChange<Input, Answer>({
  make,
  touches,
  onDone,
  notice,
}: {
  make: (input: Input) => Promise<Answer>
  /** The answers that are not true any more. */
  touches: readonly QueryKey[]
  onDone?: (answer: Answer) => unknown
  notice?: (input: Input, answer: Answer) => Notice | undefined
}) {
  const queries = useQueryClient()
  const readAgain = () => Promise.all(touches.map((queryKey) => queries.invalidateQueries({ queryKey })))
  return useMutation({
    mutationFn: make,
    onSuccess: async (answer, input) => {
      const told = notice?.(input, answer)
      const { undo } = told ?? {}
      if (told) showNotice({ ...told, ...(undo && { undo: () => undo().then(readAgain) }) })
      await onDone?.(answer)
      await readAgain()
    },
  })
}
