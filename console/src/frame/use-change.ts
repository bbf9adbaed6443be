import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query'

/**
 * A change over the API. `onDone` runs, and then what the change touches is read again: a screen that leaves what it deleted
 * returns its navigation, so that nothing asks for it any more.
 */
export function useChange<Input, Answer>({
  make,
  touches,
  onDone,
}: {
  make: (input: Input) => Promise<Answer>
  /** The answers that are not true any more. */
  touches: readonly QueryKey[]
  onDone?: (answer: Answer) => unknown
}) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: make,
    onSuccess: async (answer) => {
      await onDone?.(answer)
      await Promise.all(touches.map((queryKey) => queries.invalidateQueries({ queryKey })))
    },
  })
}
