/** Longest time that an answer which no screen took is of use, in milliseconds: a screen that opens later reads anew. */
const FRESH_MS = 10_000

const reads = new Map<string, { answer: Promise<Response>; startedAtMs: number }>()

/** Sends a read of the API before the program that needs it has loaded. Resolves with the answer, and never rejects. */
export async function readEarly(path: string, formToken: string): Promise<Response | undefined> {
  const answer = fetch(path, { headers: { 'x-form-token': formToken } })
  reads.set(new URL(path, location.origin).href, { answer, startedAtMs: performance.now() })
  return answer.then(
    (answer) => answer.clone(),
    () => undefined,
  )
}

/** The answer of a read that began early, for its first taker. Undefined when there is none, or none that is fresh. */
export function takeEarly({ method, url }: Request): Promise<Response> | undefined {
  const read = method === 'GET' ? reads.get(url) : undefined
  if (!read) return undefined
  reads.delete(url)
  return performance.now() - read.startedAtMs < FRESH_MS ? read.answer : undefined
}
