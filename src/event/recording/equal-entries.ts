import { createHash } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { groupAddress } from '../../http/request/address-group.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { AuditRecord } from './audit.store.ts'
import { addEqualEntries, type EqualRecord } from './equal-entries.store.ts'

const WINDOW_MS = 60_000

/** Interval at which a process adds its counts to the database. A crash loses the counts of one interval. */
const FLUSH_EVERY_MS = 1_000

/** Maximum number of different entries of a process in one window; beyond it, subjects are not told apart. */
const DIFFERENT_LIMIT = 1_000

/**
 * Counts audit entries that a client can cause without limit: refusals, and failed requests without a user. Equal ones
 * of a minute are one entry with a count, over all processes (docs/contract/api.md#audit-entries). The first one of a
 * process is written with its request, later ones are counted in memory.
 */
export interface EqualEntries {
  /** The entry to write now; undefined when it was counted. `noted` follows its commit. `subject` tells them apart. */
  place(record: AuditRecord, subject?: string): EqualRecord | undefined
  noted(record: EqualRecord): void
  flush(): Promise<void>
  run(): Promise<void>
  /** Ends `run`. Later counts are added by the next `flush`. */
  stop(): void
}

/** Whether equal entries like this are merged. Pure. */
export function isCounted({ outcome, userId, target }: AuditRecord): boolean {
  return outcome === 'failure' || (userId === null && target === null)
}

interface Written {
  record: EqualRecord
  more: number
}

/** Builds the counter of one process. */
export function buildEqualEntries(options: {
  db: Database
  clock: Clock
  onError?: (error: unknown) => void
}): EqualEntries {
  const { db, clock, onError } = options
  const written = new Map<string, Written>()
  const stopping = new AbortController()
  let flushing: Promise<void> = Promise.resolve()

  function place(record: AuditRecord, subject?: string): EqualRecord | undefined {
    const exact = toEqual(record, subject)
    const isNew = !written.has(nameOf(exact))
    const equal = isNew && written.size >= DIFFERENT_LIMIT ? toEqual(blur(record)) : exact
    const known = written.get(nameOf(equal))
    if (!known) return equal
    known.more += 1
    return undefined
  }

  async function addCounts(): Promise<void> {
    const start = findWindow(clock.now())
    const due = [...written.values()].filter(({ more }) => more > 0)
    if (due.length > 0) {
      const counted = due.map((entry) => ({ equal: entry, count: entry.more }))
      await addEqualEntries(
        db,
        counted.map(({ equal, count }) => ({ ...equal.record, count })),
      )
      for (const { equal, count } of counted) equal.more -= count
    }
    for (const [name, { record, more }] of written)
      if (more === 0 && findWindow(record.createdAt.getTime()) < start) written.delete(name)
  }

  // Serialized: two concurrent flushes would add the same counts twice.
  function flush(): Promise<void> {
    flushing = flushing.catch(() => {}).then(addCounts)
    return flushing
  }

  return {
    place,
    noted: (record) => {
      const name = nameOf(record)
      if (!written.has(name)) written.set(name, { record, more: 0 })
    },
    flush,
    run: async () => {
      while (!stopping.signal.aborted) {
        await clock.sleep(FLUSH_EVERY_MS, stopping.signal)
        // The counts stay for the next flush.
        if (!stopping.signal.aborted) await flush().catch((error: unknown) => onError?.(error))
      }
    },
    stop: () => stopping.abort(),
  }
}

const findWindow = (ms: number) => ms - (ms % WINDOW_MS)
const nameOf = ({ equalKey }: EqualRecord) => equalKey.toString('base64')

/** Key of equal entries, with their window. The address of a known caller is not part of it. */
function toEqual(record: AuditRecord, subject: string | null = null): EqualRecord {
  const { action, outcome, userId, sessionId, apiKeyId, clientId, account, target, address, detail, createdAt } = record
  const network = address === null ? null : groupAddress(address)
  const reason = detail.reason ?? detail.result ?? null
  // The provider of a sign-in: an entry counts only refusals with its provider.
  const provider = detail.provider ?? null
  const facts = [
    action,
    outcome,
    reason,
    provider,
    userId,
    sessionId,
    apiKeyId,
    clientId,
    account,
    target,
    network,
    record.portalSession,
  ]
  const text = JSON.stringify([findWindow(createdAt.getTime()), ...facts, subject])
  return { ...record, count: 1, equalKey: createHash('sha256').update(text).digest() }
}

/** The entry without members that a stranger can choose: address, target, and the unauthenticated user. */
function blur(record: AuditRecord): AuditRecord {
  const { sessionId, apiKeyId, userId, detail } = record
  const isCaller = sessionId !== null || apiKeyId !== null
  const { reason = detail.result ?? null } = detail
  const rest = { account: null, target: null, address: null, requestId: null }
  return { ...record, ...rest, userId: isCaller ? userId : null, detail: { reason, is_of_many: true } }
}
