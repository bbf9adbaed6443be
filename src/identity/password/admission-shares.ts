import { buildCache } from '../../base/cache.ts'
import type { Clock } from '../../base/clock.ts'
import type { PlaceVisitor } from '../../http/pipeline/pipeline-deps.ts'
import { listNetworks } from '../../http/request/address-group.ts'

/** Frees a place. A refused attempt costs the network of a stranger more than a correct one. */
export type LeavePlace = (isRefused: boolean) => void

/** Places reserved for browsers that have signed in before: an eighth of all. */
const KNOWN_SHARE = 1 / 8

/** Places reserved for networks with few attempts: a quarter of all. */
const FAIR_SHARE = 1 / 4

/** Maximum number of places of one known browser. */
const BROWSER_LIMIT = 2

/** Cost of an attempt for a network, and surcharge of a refused one, in points. */
const TRY_POINTS = 1
const REFUSED_POINTS = 4

/** A network loses one point in this time. */
const FORGIVEN_MS = 5_000

/** Maximum points of a network, which expire within five minutes. */
const POINTS_LIMIT = 60

/**
 * Points from which a network gets none of the places reserved for networks with few attempts. One wrong password and
 * another attempt stay below it; the limits are those of a single network (an IPv4 address, a /64), of a /56, and of a
 * /24 or /48.
 */
const FAIR_POINTS = { single: 8, middle: 16, wide: 32 }

/** Maximum number of networks whose points a process stores. */
const NETWORKS_LIMIT = 30_000

/** Lead in points at which a waiting request of another network loses its place: more than one attempt. */
const LEAD_POINTS = 1.5

interface Points {
  value: number
  atMs: number
}

/** A place, as the work of its request uses it. */
export interface Admission {
  leave: LeavePlace
  /** Points of its network: work of a network with fewer points runs first. */
  readPoints(): number
  /** Whether the work is running: it then keeps the place. */
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
 * Shares a number of places, so that no network keeps others out: known browsers may use all of them, strangers all but
 * an eighth, and the last quarter of those only while their network has few points. When all are taken, an attempt
 * replaces a waiting one of a network with more points. Points and places are in memory, by process.
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

  /** Takes the place of the waiting network with the most points, if its lead is large enough. */
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
      // Repeated attempts cost points; the first refusal of a network does not.
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
    /** Takes a place; undefined without one for this visitor. */
    take: ({ address, knownBrowser }: PlaceVisitor): Admission | undefined =>
      (knownBrowser && takeOfBrowser(knownBrowser.id)) ?? takeOfStranger(address),
    /** Number of stored networks; for tests. */
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
