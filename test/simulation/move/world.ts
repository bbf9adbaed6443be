import type { FenceState, Place } from '../../../src/carriage/move/move-plan.ts'

/** A fault that is planted into the model: the simulation has to find each. */
export type PlantedFault =
  | 'no fence'
  | 'no lock'
  | 'no drain'
  | 'attempts not awaited'
  | 'told events not awaited'
  | 'recorded events not awaited'
  | 'home tells during a move'
  | 'switched before the copy'
  | 'back after the switch'
  | 'back opens before it clears'
  | 'links stay at the source'
  | 'ordinals not raised'
  | 'stalled runner goes on'
  | 'outbox not awaited'
  | 'copy not verified'

export const GLOBAL = 'global'

/** A delivery: a row of the ledger. */
export interface Row {
  attempts: number
  state: 'waiting' | 'leased' | 'ended'
}

export interface StoredEvent {
  account: string
  ordinal: number
  /** Taken in from the log. */
  isTaken: boolean
}

/** A transaction that the fence let pass, and that has not committed. */
export interface Begun {
  account: string
  event: string
}

/** One database. */
export interface Site {
  name: Place
  fence: Map<string, FenceState>
  /** The number of the runner that may change rows of an account's move. */
  epoch: Map<string, number>
  sequence: number
  events: Map<string, StoredEvent>
  queue: Set<string>
  /** Webhooks with their account and ordinal; `isLinked` while they have their subscriptions. */
  webhooks: Map<string, { account: string; ordinal: number; isLinked: boolean }>
  rows: Map<string, Row>
  resting: Set<string>
  /** Accounts whose copy this database has to its last write. */
  copied: Set<string>
  outbox: string[]
  /** What the log confirmed last of this database. */
  relayed: { incarnation: number; sequence: number }
  intake: { incarnation: number; sequence: number }
  begun: Set<Begun>
}

/** The event log: a stream that may be lost. */
export interface Log {
  incarnation: number
  messages: { event: string; account: string; origin: Place }[]
}

/** Everything, with what was promised to publishers. */
export interface World {
  sites: Map<Place, Site>
  log: Log
  directory: Map<string, Place>
  /** What each process believes of the directory. */
  caches: Map<string, Place>[]
  /** Accepted events, with the webhooks that they are for. */
  accepted: Map<string, string[]>
  posts: Map<string, number>
  faults: ReadonlySet<PlantedFault>
  violations: string[]
  nextEvent: number
}

export const keyOf = (event: string, webhook: string) => `${event} ${webhook}`
export const accountOf = (webhook: string) => webhook.slice(0, 1)

function buildSite(name: Place): Site {
  return {
    ...{ name, fence: new Map(), epoch: new Map(), sequence: 0, events: new Map(), queue: new Set() },
    ...{ webhooks: new Map(), rows: new Map(), resting: new Set(), copied: new Set(), outbox: [], begun: new Set() },
    ...{ relayed: { incarnation: 1, sequence: 0 }, intake: { incarnation: 1, sequence: 0 } },
  }
}

/** Home with a global webhook, two cells, and accounts of two webhooks each in these places. */
export function buildWorld(faults: ReadonlySet<PlantedFault>, places: ReadonlyMap<string, Place>): World {
  const sites = new Map(([null, 'c1', 'c2'] as Place[]).map((name) => [name, buildSite(name)] as const))
  const home = sites.get(null)!
  // Home has recorded much before there were cells: its ordinals are ahead of theirs.
  home.sequence = 1_000
  for (const [account, place] of places) {
    const site = sites.get(place)!
    if (place !== null) home.fence.set(account, 'gone')
    site.fence.set(account, 'open')
    for (const webhook of [`${account}1`, `${account}2`])
      site.webhooks.set(webhook, { account, ordinal: ++site.sequence, isLinked: true })
  }
  return {
    ...{
      sites,
      log: { incarnation: 1, messages: [] },
      directory: new Map(places),
      faults,
      violations: [],
      nextEvent: 0,
    },
    ...{ caches: [new Map(), new Map()], accepted: new Map(), posts: new Map() },
  }
}

export type Kind = 'begun' | 'ended' | 'taken' | 'told'

/** The fence of an account, as `fence_lets` judges. */
export function lets(world: World, site: Site, account: string, kind: Kind): boolean {
  const isHome = site.name === null
  const state = site.fence.get(account) ?? (isHome ? 'open' : 'gone')
  if (world.faults.has('no fence') && kind === 'begun') return true
  return (
    state === 'open' ||
    (state === 'held' && (kind === 'ended' || kind === 'taken')) ||
    (isHome && kind === 'taken') ||
    (isHome && state === 'gone' && kind === 'told')
  )
}

/** Writes an event with its place in the queue and, of an own one, in the outbox. */
export function store(site: Site, event: string, account: string, isTaken: boolean): void {
  site.sequence += 1
  site.events.set(event, { account, ordinal: site.sequence, isTaken })
  site.queue.add(event)
  if (!isTaken) site.outbox.push(event)
}

/** Routes an event to the webhooks that are here, as old as it is. */
export function route(world: World, site: Site, event: string): void {
  const stored = site.events.get(event)
  site.queue.delete(event)
  if (!stored) return
  for (const [webhook, { account, ordinal, isLinked }] of site.webhooks)
    if (account === stored.account && isLinked && ordinal <= stored.ordinal) {
      const isElsewhere = [...world.sites.values()].some(
        (other) => other !== site && other.rows.has(keyOf(event, webhook)),
      )
      if (isElsewhere) world.violations.push(`${event} was routed to ${webhook} in two databases`)
      open(site, event, webhook)
    }
  if (site.name === null) open(site, event, GLOBAL)
}

function open(site: Site, event: string, webhook: string): void {
  const key = keyOf(event, webhook)
  if (!site.rows.has(key)) site.rows.set(key, { attempts: 0, state: 'waiting' })
}

/** The rows of a site that are of an account's own webhooks. */
export function rowsOf(site: Site, account: string): [string, Row][] {
  return [...site.rows].filter(([key]) => accountOf(key.split(' ')[1]!) === account)
}

/** Appends the first event of an outbox. `isConfirmed`: the relay lived to delete it. */
export function relay({ log }: World, site: Site, isConfirmed: boolean): void {
  const [event] = site.outbox
  if (event === undefined) return
  if (site.relayed.incarnation !== log.incarnation) {
    // A loss: what this database recorded is published again.
    const own = [...site.events].filter(([, { isTaken }]) => !isTaken).map(([id]) => id)
    site.outbox = [...new Set([...own, ...site.outbox])]
    site.relayed = { incarnation: log.incarnation, sequence: log.messages.length }
    return
  }
  const stored = site.events.get(event)
  if (stored) log.messages.push({ event, account: stored.account, origin: site.name })
  if (!isConfirmed) return
  site.outbox.shift()
  site.relayed = { incarnation: log.incarnation, sequence: log.messages.length }
}

/** Reads the next message of the log. */
export function takeIn(world: World, site: Site): void {
  const { log } = world
  if (site.intake.incarnation !== log.incarnation) site.intake = { incarnation: log.incarnation, sequence: 0 }
  const message = log.messages[site.intake.sequence]
  if (!message) return
  site.intake.sequence += 1
  const { event, account, origin } = message
  const isConcerned = site.name === null ? origin !== null : origin === null && lets(world, site, account, 'taken')
  if (isConcerned && !site.events.has(event)) store(site, event, account, true)
}

/** Claims a waiting row: the POST is counted before it is made. */
export function claim(world: World, key: string, row: Row): void {
  row.attempts += 1
  row.state = 'leased'
  const posts = (world.posts.get(key) ?? 0) + 1
  world.posts.set(key, posts)
  if (posts > 5) world.violations.push(`${key} was posted ${posts} times`)
}

/** Ends an attempt. */
export function settle(row: Row, isSuccess: boolean): void {
  row.state = isSuccess || row.attempts >= 5 ? 'ended' : 'waiting'
}
