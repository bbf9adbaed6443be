type Send = (...input: unknown[]) => unknown

/** The end of a statement: its error, or its result. */
type End = readonly [error: Error | null, result: unknown]

/**
 * Sends a statement with `query` of a client, and lets `onEnd` see its end and change it: of a query with a callback,
 * or of a text that a promise answers.
 */
export function sendSeen(send: Send, input: readonly unknown[], onEnd: (...end: End) => End): unknown {
  const [query] = input as [{ callback?: (...end: End) => void } | undefined]
  if (typeof query?.callback === 'function') {
    const answer = query.callback
    query.callback = (...end) => answer(...onEnd(...end))
    return send(...input)
  }
  const answered = send(...input) as Promise<unknown>
  const finish = (...end: End) => {
    const [error, result] = onEnd(...end)
    if (error) throw error
    return result
  }
  return answered.then(
    (result) => finish(null, result),
    (error: Error) => finish(error, undefined),
  )
}
