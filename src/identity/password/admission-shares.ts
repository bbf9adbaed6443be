import { buildCache } from '../../base/cache.ts'
import type { Clock } from '../../base/clock.ts'
import type { PlaceVisitor } from '../../http/pipeline/pipeline-deps.ts'
import { listNetworks } from '../../http/request/address-group.ts'

/** Frees a place. A refused try, such as a wrong password, costs the network of a stranger more than one that was right. */
export type LeavePlace = (isRefused: boolean) => void

/** Places that strangers leave to browsers that have signed in before: an eighth of all. */
const KNOWN_SHARE = 1 / 8

/** Places that networks which tried much leave to those that tried little: a quarter of all. */
const FAIR_SHARE = 1 / 4

/** Most places of one browser that has signed in before. */
const BROWSER_LIMIT = 2

/** Cost of an attempt for a network, and surcharge of a refused one, in points. */
const TRY_POINTS = 1
const REFUSED_POINTS = 4

/** A network loses one point in this time. */
const FORGIVEN_MS = 5_000

/** Most points of a network, so that it is forgiven within five minutes. */
const POINTS_LIMIT = 60

/**
 * From so many points on a network gets none of the places that are left to those that have tried little. One wrong password and another try are within it; the limits are those of a single network (an IPv4 address, a
 * /64), of a /56, and of a /24 or /48.
 */
const FAIR_POINTS = { single: 8, middle: 16, wide: 32 }

/** Most networks whose points a process keeps. */
const NETWORKS_LIMIT = 30_000

/**
 * By so many points another network has to be ahead for its waiting request to give up its place: more than the one try that
 * holds the place, so that a network which tries for the first time is safe from the next one that does.
 */
const LEAD_POINTS = 1.5

interface Points {
  value: number
  atMs: number
}

/** A place as the work of its request sees it. */
export interface Admission {
  leave: LeavePlace
  /** How much its network has tried: work of one that tried less runs first. */
  readPoints(): number
  /** Whether the work runs: it then keeps the place. */
  isRunning: boolean
  /** Whether the place was given to another network. */
  isGone: boolean
  /** Called when that happens while the work waits. */
  onGone?: () => void
}

interface StrangerPlace extends Admission {
  networks: readonly string[]
}

/**
 * Shares a number of places, so that no network keeps others out: browsers that have signed in before may have all of them,
 * strangers all but an eighth, and the last quarter of those only while their network has tried little. Where all are taken, a
 * network that has tried less gets the place of one that is ahead and whose work waits. Points are kept in memory, by
 * process, as are the places.
 */
export function buildShares(places: number, clock: Pick<Clock, 'now'>) {
  const forStrangers = places - Math.floor(places * KNOWN_SHARE)
  const forAnyNetwork = forStrangers - Math.floor(places * FAIR_SHARE)
  const points = buildCache<string, Points>({ limit: NETWORKS_LIMIT })
  const browsers = new Map<string, number>()
  let taken = 0
  const strangers = new Set<StrangerPlace>()

  const read = (network: string) => {
    const known = points.find(network)
    return known ? Math.max(0, known.value - (clock.now() - known.atMs) / FORGIVEN_MS) : 0
  }

  function charge(networks: readonly string[], cost: number): void {
    for (const network of networks) {
      const value = Math.min(POINTS_LIMIT, read(network) + cost)
      points.put(network, { value, atMs: clock.now() })
    }
  }

  function hasTriedLittle(networks: readonly string[]): boolean {
    return networks.every((network, index) => {
      const isWide = index === networks.length - 1
      const limit = index === 0 ? FAIR_POINTS.single : isWide ? FAIR_POINTS.wide : FAIR_POINTS.middle
      return read(network) < limit
    })
  }

  function takeOfBrowser(browser: string): Admission | undefined {
    const held = browsers.get(browser) ?? 0
    if (held >= BROWSER_LIMIT || taken >= places) return undefined
    browsers.set(browser, held + 1)
    taken += 1
    return hold({ readPoints: () => 0 }, () => {
      taken -= 1
      const left = (browsers.get(browser) ?? 1) - 1
      if (left === 0) browsers.delete(browser)
      else browsers.set(browser, left)
    })
  }

  /** The points of the widest network, which grow with each address in it. */
  const readWide = (networks: readonly string[]) => read(networks.at(-1) ?? '')

  /** Takes the place of the network that is furthest ahead of these, if it is far enough and its work waits. */
  function takeOver(networks: readonly string[]): boolean {
    let furthest: StrangerPlace | undefined
    for (const place of strangers)
      if (!place.isRunning && readWide(place.networks) > (furthest ? readWide(furthest.networks) : 0)) furthest = place
    if (!furthest || readWide(furthest.networks) < readWide(networks) + LEAD_POINTS) return false
    furthest.leave(false)
    furthest.isGone = true
    furthest.onGone?.()
    return true
  }

  function takeOfStranger(address: string): Admission | undefined {
    const networks = listNetworks(address)
    const isFree = strangers.size < forStrangers && taken < places
    const mayTake = isFree && (strangers.size < forAnyNetwork || hasTriedLittle(networks))
    if (!mayTake && !takeOver(networks)) {
      // Who asks again and again pays for it; the first refusal of a network is not its fault.
      if (read(networks[0]) > 0) charge(networks, TRY_POINTS)
      return undefined
    }
    charge(networks, TRY_POINTS)
    taken += 1
    const place = hold({ networks, readPoints: () => readWide(networks) }, (isRefused) => {
      taken -= 1
      strangers.delete(place)
      if (isRefused) charge(networks, REFUSED_POINTS)
    })
    strangers.add(place)
    return place
  }

  return {
    /** Takes a place; undefined when there is none for this visitor. */
    take: ({ address, knownBrowser }: PlaceVisitor): Admission | undefined =>
      (knownBrowser && takeOfBrowser(knownBrowser.id)) ?? takeOfStranger(address),
    /** How many networks are kept; for tests. */
    countNetworks: () => points.count(),
  }
}

/** A place that is left once. */
function hold<More extends Pick<Admission, 'readPoints'>>(more: More, leave: LeavePlace): More & Admission {
  let isHeld = true
  return {
    ...more,
    isRunning: false,
    isGone: false,
    leave: (isRefused) => {
      if (isHeld) leave(isRefused)
      isHeld = false
    },
  }
}
