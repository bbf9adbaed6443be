import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query'

/** A change over the API. What it touches is read again, and then `onDone` runs. */
export function useChange<Input, Answer>({
  make,
  touches,
  onDone,
}: {
  make: (input: Input) => Promise<Answer>
  /** The answers that are not true any more. */
  touches: readonly QueryKey[]
  onDone?: (answer: Answer) => void
}) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: make,
    onSuccess: async (answer) => {
      onDone?.(answer)
      await Promise.all(touches.map((queryKey) => queries.invalidateQueries({ queryKey })))
    },
  })
}
