import type { AccountId } from '../../base/id.ts'
import { parseLsn } from '../../postgres/connection/replica.ts'
import { CARRIED_HEADER, type CarriedEvent, peekOrigin, readCarried } from '../log/carried-event.ts'
import type { LogEntry, LogErrorCode } from '../log/log.ts'

/** The database that takes in. */
export interface IntakePlace {
  /** The service, by the id of its home. */
  home: string
  /** `home`, or the name of the cell. */
  self: string
}

/** Content of a batch of the log for a database. */
export interface IntakeDecision {
  /** Events that other databases recorded. The statement that writes them knows which accounts and types concern it. */
  events: CarriedEvent[]
  /** The position of home's log of changes that they need; undefined when they need none. */
  reference: string | undefined
  /** Messages that are too old: keys would not find out any more that they were taken in. */
  tooOld: number
  /** Messages with a seal or a form that is not of this service. */
  foreign: number
}

/**
 * Messages of the log that concern a database: a cell events of home, home events of cells. Those without a header
 * were appended before there were cells. `isPassedOver`: types whose events their database has dealt with. Pure.
 */
export function decideIntake(
  entries: readonly LogEntry[],
  given: IntakePlace & {
    open: (sealed: string) => string | undefined
    isPassedOver: (type: string) => boolean
    /** Events recorded before are too old. */
    oldest: Date
    /** The same by account, of those with a retention of their own; the later instant holds. */
    own?: ReadonlyMap<AccountId, Date>
  },
): IntakeDecision {
  const decision: IntakeDecision = { events: [], reference: undefined, tooOld: 0, foreign: 0 }
  for (const { id, headers } of entries) {
    const sealed = findHeader(headers)
    if (sealed === undefined) continue
    // Most messages of a service with many cells; those that they concern check the seal.
    const origin = peekOrigin(sealed)
    if (origin !== undefined && !concerns(origin, given.self)) continue
    const text = given.open(sealed)
    const found = text === undefined ? undefined : readCarried(text)
    if (!found || found.event.id !== id || found.carried.home !== given.home) {
      decision.foreign += 1
      continue
    }
    const { event, carried } = found
    if (!concerns(carried.origin, given.self) || given.isPassedOver(event.type)) continue
    const own = event.account === null ? undefined : given.own?.get(event.account)
    if (event.createdAt < given.oldest || (own && event.createdAt < own)) decision.tooOld += 1
    else {
      decision.events.push(found)
      decision.reference = findLater(decision.reference, carried.reference ?? undefined)
    }
  }
  return decision
}

/** Clients of NATS may write names of headers in another case. */
function findHeader(headers: LogEntry['headers']): string | undefined {
  const found = headers[CARRIED_HEADER]
  if (found !== undefined) return found
  const name = Object.keys(headers).find((key) => key.toLowerCase() === CARRIED_HEADER.toLowerCase())
  return name === undefined ? undefined : headers[name]
}

const concerns = (origin: string, self: string) => (self === 'home' ? origin !== 'home' : origin === 'home')

function findLater(one: string | undefined, two: string | undefined): string | undefined {
  if (one === undefined || two === undefined) return one ?? two
  return parseLsn(one) >= parseLsn(two) ? one : two
}

/** Why a position is of no use any more. */
export type IntakeFault = 'replaced' | 'ahead' | 'expired'

/** The fault that an error of the log is; undefined for one that passes. Pure. */
export function findFault(code: LogErrorCode | undefined): IntakeFault | undefined {
  return code === 'replaced' || code === 'ahead' || code === 'expired' ? code : undefined
}

/** Messages of a log that lost its end, or was replaced, may stand a little before the last one that was taken in. */
const MARGIN_MS = 300_000

/** The instant from which the log is read again after a fault: keys know what was taken in already. Pure. */
export function decideReadSince(fault: IntakeFault, storedAt: Date | null): Date {
  if (fault === 'expired' || storedAt === null) return new Date(0)
  return new Date(Math.max(0, storedAt.getTime() - MARGIN_MS))
}
