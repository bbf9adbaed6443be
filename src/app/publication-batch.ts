import { type Database, isDataRefused } from '../postgres/database.ts'
import { type Publications, recordPublicationBatch } from './publication-batch.store.ts'

/** Statements under way at once: while one waits for the disk, the next one fills. */
const STATEMENTS_AT_ONCE = 2

/** Events of one statement at most, where it holds more than one request. */
const EVENTS_LIMIT = 2_000

/** Records publications; those of requests that come at the same time share a statement. */
export interface PublicationBatch {
  /** Resolves when the events and audit entries are durable; false when a rule is broken, and nothing of them is kept. */
  record(publications: Publications): Promise<boolean>
}

interface Waiting {
  publications: Publications
  resolve: (isRecorded: boolean) => void
  reject: (error: unknown) => void
}

/** Builds the batch. A request that comes alone is recorded at once. */
export function buildPublicationBatch(db: Database): PublicationBatch {
  const waiting: Waiting[] = []
  let underWay = 0

  async function run(): Promise<void> {
    underWay += 1
    while (waiting.length > 0) await recordAll(takeBatch(waiting), db)
    underWay -= 1
  }

  return {
    record: (publications) =>
      new Promise((resolve, reject) => {
        waiting.push({ publications, resolve, reject })
        if (underWay < STATEMENTS_AT_ONCE) void run()
      }),
  }
}

function takeBatch(waiting: Waiting[]): Waiting[] {
  let events = 0
  const end = waiting.findIndex(({ publications }, index) => {
    events += publications.events.length
    return index > 0 && events > EVENTS_LIMIT
  })
  return waiting.splice(0, end === -1 ? waiting.length : end)
}

/** Settles every promise of a batch. Data of one request that the database does not take must not fail the others. */
async function recordAll(batch: readonly Waiting[], db: Database): Promise<void> {
  try {
    const broken = await recordPublicationBatch(
      db,
      batch.map((one) => one.publications),
    )
    for (const [item, one] of batch.entries()) one.resolve(!broken.has(item))
  } catch (error) {
    if (batch.length > 1 && isDataRefused(error)) {
      for (const one of batch) await recordAll([one], db)
    } else {
      for (const one of batch) one.reject(error)
    }
  }
}
