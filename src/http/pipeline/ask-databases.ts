import { isDatabaseUnavailable } from '../../postgres/statement/database.ts'
import { Problem } from '../problem/problem.ts'
import type { Place } from './pipeline-deps.ts'

/** 503 for a request whose rows are, or may be, in cells that do not answer. */
export function buildCellAway(cells: readonly string[], cause?: unknown): Problem {
  const names = cells.join(', ')
  return new Problem(
    'dependency_unavailable',
    `The cell ${names} does not answer, and the rows of this request may be there. Try again; repeat a change with the ` +
      'same Idempotency-Key, in case it was committed.',
    { headers: { 'retry-after': '5' }, reason: `cell ${names} away`, cause },
  )
}

/** Answer of a database. */
export interface Answered<Result> {
  place: Place
  answer?: Result
  failed?: unknown
}

/** Asks each database, in parallel. The answer of a cell that fails is its error; a failure of home is thrown. */
export async function askDatabases<Result>(
  places: readonly Place[],
  ask: (place: Place) => Promise<Result>,
): Promise<Answered<Result>[]> {
  return Promise.all(
    places.map((place) =>
      ask(place).then(
        (answer) => ({ place, answer }),
        (failed: unknown) => {
          if (place.cell === null) throw failed
          return { place, failed }
        },
      ),
    ),
  )
}

/** The same where every answer is needed: 503 names the cells that do not answer, and any other failure is thrown. */
export async function askEveryDatabase<Result>(
  places: readonly Place[],
  ask: (place: Place) => Promise<Result>,
): Promise<Result[]> {
  const answers = await askDatabases(places, ask)
  const failures = answers.filter((answered) => 'failed' in answered)
  const other = failures.find(({ failed }) => !isDatabaseUnavailable(failed))
  if (other) throw other.failed
  const [first] = failures
  if (first)
    throw buildCellAway(
      failures.map(({ place }) => place.cell ?? ''),
      first.failed,
    )
  return answers.map(({ answer }) => answer as Result)
}
