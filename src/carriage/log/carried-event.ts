import { createHmac, timingSafeEqual } from 'node:crypto'
import { type AccountId, type EventId, isUuid, type WebhookId } from '../../base/id.ts'
import type { EventRecord } from '../../event/occurrence/event.store.ts'
import { CELL_NAME } from '../../postgres/cell/cell-name.ts'

/** The header that databases of one service read: what the envelope lacks, sealed. */
export const CARRIED_HEADER = 'Signalbox-Carried'

/** A later version that a database cannot read is no event for it: databases are migrated before processes write it. */
const VERSION = 1

/** Characters of a header at most: those of a long URL and a trace, each escaped. */
const LIMIT = 65_536

/** An event of the outbox. */
export type LoggedEvent = Pick<
  EventRecord,
  'id' | 'type' | 'account' | 'resource' | 'action' | 'resourceId' | 'url' | 'trace' | 'createdAt'
> &
  Pick<EventRecord, 'isPurge' | 'excludedWebhook'> & { carried: Carried | null }

/** Facts beside an event, from one database of a service to the others. */
export interface Carried {
  /** The service, by the id of its home. */
  home: string
  /** `home`, or the name of the cell that recorded the event. */
  origin: string
  /** The position of home's log of changes behind all that the event refers to; null of a cell's event. */
  reference: string | null
}

export interface CarriedEvent {
  event: EventRecord
  carried: Carried
}

/** The text of a header, in ASCII. Pure. */
export function writeCarried(event: LoggedEvent & { carried: Carried }): string {
  const { id, type, account, resource, action, resourceId, url, trace, isPurge, excludedWebhook, carried } = event
  const { home, origin, reference } = carried
  const named = [id, type, account, resource, action, resourceId, url, trace, excludedWebhook]
  const text = JSON.stringify([VERSION, home, origin, reference, ...named, isPurge, event.createdAt.getTime()])
  return text.replace(/[^ -~]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const POSITION = /^[0-9A-F]{1,8}\/[0-9A-F]{1,8}$/

/** Characters of a text of an event at most, as PostgreSQL keeps it: no NUL and no half of a pair. */
const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= 8_192 && !value.includes('\0') && value.isWellFormed()
const isId = (value: unknown): value is string => typeof value === 'string' && isUuid(value)
const orNull = (check: (value: unknown) => boolean) => (value: unknown) => value === null || check(value)

const LATEST_MS = Date.UTC(9999, 11, 31)

/** The checks of the members, in their order. */
const CHECKS: readonly ((value: unknown) => boolean)[] = [
  (value) => value === VERSION,
  isId,
  (value) => typeof value === 'string' && CELL_NAME.test(value),
  orNull((value) => typeof value === 'string' && POSITION.test(value)),
  isId,
  isText,
  orNull(isId),
  isText,
  isText,
  orNull(isText),
  orNull(isText),
  orNull(isText),
  orNull(isId),
  (value) => typeof value === 'boolean',
  (value) => Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= LATEST_MS,
]

/** Reads the text of a header; undefined for anything that `writeCarried` does not write. Pure. */
export function readCarried(text: string): CarriedEvent | undefined {
  if (text.length > LIMIT) return undefined
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!Array.isArray(given) || given.length !== CHECKS.length) return undefined
  const members: unknown[] = given
  if (!CHECKS.every((check, index) => check(members[index]))) return undefined
  const [, home, origin, reference, id, type, account, resource, action, ...rest] = members as string[]
  const [resourceId, url, trace, excludedWebhook, isPurge, createdAtMs] = rest as unknown[]
  return {
    carried: { home: home as string, origin: origin as string, reference: reference ?? null },
    event: {
      ...{ id: id as EventId, type: type as string, account: (account ?? null) as AccountId | null },
      ...{ resource: resource as string, action: action as string },
      ...{ resourceId: resourceId as string | null, url: url as string | null, trace: trace as string | null },
      ...{ excludedWebhook: excludedWebhook as WebhookId | null, isPurge: isPurge as boolean },
      createdAt: new Date(createdAtMs as number),
    },
  }
}

/** Seals and opens the header. Other writers of the log do not have the key. */
export interface CarriedSeal {
  seal(text: string): string
  /** The sealed text; undefined for another seal. */
  open(sealed: string): string | undefined
}

/** The purpose of its keys (`Keyring.deriveKeys`). */
export const CARRIED_PURPOSE = 'event log'

const MAC_LENGTH = 43

const ORIGIN = new RegExp(`^[^.]{${MAC_LENGTH}}\\.\\[${VERSION},"[0-9a-f-]{36}","([a-z][a-z0-9-]{0,30})"`)

/**
 * The origin that a sealed header names; undefined for another form. Unchecked: a reason to pass a message over only.
 */
export const peekOrigin = (sealed: string): string | undefined => ORIGIN.exec(sealed)?.[1]

/** Builds it from keys of which the first seals and each opens. */
export function buildCarriedSeal(keys: readonly Buffer[]): CarriedSeal {
  const [first] = keys
  if (!first) throw new Error('a seal needs at least one key')
  const macOf = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest('base64url')
  return {
    seal: (text) => `${macOf(first, text)}.${text}`,
    open: (sealed) => {
      if (sealed.length > LIMIT || sealed[MAC_LENGTH] !== '.') return undefined
      const given = Buffer.from(sealed.slice(0, MAC_LENGTH))
      const text = sealed.slice(MAC_LENGTH + 1)
      const isOurs = keys.some((key) => {
        const mac = Buffer.from(macOf(key, text))
        return mac.length === given.length && timingSafeEqual(mac, given)
      })
      return isOurs ? text : undefined
    },
  }
}
