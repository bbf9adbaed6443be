import { systemClock } from '../../base/clock.ts'

/** How long a cell may take to answer, in ms, before it counts as away. */
const ANSWER_LIMIT_MS = 3_000

/** The answer of a cell; rejects with the error of `onLate` when it takes longer than the limit. */
export async function withinAnswerLimit<Value>(
  reading: Promise<Value>,
  onLate: () => Error = () => new Error('The cell does not answer.'),
): Promise<Value> {
  const limit = new AbortController()
  const late = systemClock.sleep(ANSWER_LIMIT_MS, limit.signal).then(() => 'late' as const)
  try {
    const first = await Promise.race([reading.then((value) => ({ value })), late])
    if (first === 'late') throw onLate()
    return first.value
  } finally {
    limit.abort('over')
  }
}
