import type { Place } from '../../../src/carriage/move/move-plan.ts'
import type { Dice } from '../seed.ts'
import { advance, countOpen, goBack, loseCopy, type MoveRow, type Runner, takeOver } from './mover.ts'
import {
  accountOf,
  type Begun,
  buildWorld,
  claim,
  GLOBAL,
  keyOf,
  lets,
  type PlantedFault,
  relay,
  route,
  rowsOf,
  type Site,
  settle,
  store,
  takeIn,
  type World,
} from './world.ts'

const ACCOUNTS = ['a', 'b']
const PLACES: readonly Place[] = [null, 'c1', 'c2']

/** What happened in a history. */
export interface Told {
  violations: string[]
  moves: number
  backs: number
  takenOver: number
  refused: number
  accepted: number
}

/** Plays one history of `steps` steps, lets everything come to rest, and says what was broken. */
export function playHistory(dice: Dice, faults: readonly PlantedFault[], steps: number): Told {
  const world = buildWorld(new Set(faults), new Map(ACCOUNTS.map((account) => [account, dice.pick(PLACES)])))
  const told: Told = { violations: world.violations, moves: 0, backs: 0, takenOver: 0, refused: 0, accepted: 0 }
  const play = new Play(world, dice, told)
  for (let step = 0; step < steps; step += 1) play.step()
  play.rest()
  play.judge()
  return told
}

/** A history under way. */
class Play {
  readonly world: World
  readonly dice: Dice
  readonly told: Told
  rows = new Map<string, MoveRow>()
  runners: Runner[] = []

  constructor(world: World, dice: Dice, told: Told) {
    this.world = world
    this.dice = dice
    this.told = told
  }

  step(): void {
    const { dice, world } = this
    const site = dice.pick([...world.sites.values()])
    const roll = dice.between(0, 99)
    if (roll < 10) this.publish()
    else if (roll < 17) this.tell()
    else if (roll < 27) this.commit(site)
    else if (roll < 35) this.work(site)
    else if (roll < 44) relay(world, site, dice.chance(0.9))
    else if (roll < 50) takeIn(world, site)
    else if (roll < 60) this.attempt(site)
    else if (roll < 64) this.begin()
    else if (roll < 65) this.takeOver()
    else if (roll < 66) this.goBack()
    else if (roll < 67 && dice.chance(0.05)) this.loseLog()
    else if (roll < 69 && this.rows.size > 0) loseCopy(dice.pick([...this.rows.values()]), world)
    else this.run()
    this.watch()
  }

  /** A publication: the process asks the database that it believes in, once more where it is refused. */
  publish(): void {
    const { world, dice, told } = this
    const account = dice.pick(ACCOUNTS)
    const cache = dice.pick(world.caches)
    for (let look = 0; look < 2; look += 1) {
      const place = cache.get(account) ?? null
      if (this.beginAt(world.sites.get(place)!, account, 'begun')) return
      cache.set(account, world.directory.get(account) ?? null)
    }
    told.refused += 1
  }

  /** A change of a resource of home. */
  tell(): void {
    const account = this.dice.pick(ACCOUNTS)
    if (!this.beginAt(this.world.sites.get(null)!, account, 'told')) this.told.refused += 1
  }

  beginAt(site: Site, account: string, kind: 'begun' | 'told'): boolean {
    if (!lets(this.world, site, account, kind)) return false
    this.world.nextEvent += 1
    site.begun.add({ account, event: `${account}${this.world.nextEvent}` })
    return true
  }

  commit(site: Site): void {
    const { world, dice, told } = this
    if (site.begun.size === 0) return
    const begun: Begun = dice.pick([...site.begun])
    site.begun.delete(begun)
    if (dice.chance(0.1)) return
    store(site, begun.event, begun.account, false)
    world.accepted.set(begun.event, [`${begun.account}1`, `${begun.account}2`, GLOBAL])
    told.accepted += 1
  }

  work(site: Site): void {
    if (site.queue.size > 0) route(this.world, site, this.dice.pick([...site.queue]))
  }

  /** Claims, or ends an attempt; a lost one is made again. An attempt may fail its webhook, which is an event. */
  attempt(site: Site): void {
    const { world, dice } = this
    const leased = [...site.rows].filter(([, row]) => row.state === 'leased')
    if (leased.length > 0 && dice.chance(0.6)) {
      const [key, row] = dice.pick(leased)
      settle(row, dice.chance(0.6))
      const account = accountOf(key.split(' ')[1]!)
      if (!ACCOUNTS.includes(account) || !dice.chance(0.1)) return
      if (!lets(world, site, account, 'ended')) world.violations.push(`the result of ${key} was refused`)
      else store(site, `${account}${++world.nextEvent}`, account, false)
      return
    }
    const waiting = [...site.rows].filter(
      ([key, row]) => row.state === 'waiting' && !site.resting.has(accountOf(key.split(' ')[1]!)),
    )
    if (waiting.length > 0) claim(world, ...dice.pick(waiting))
  }

  begin(): void {
    const { dice, world, told } = this
    const account = dice.pick(ACCOUNTS)
    if (this.rows.has(account)) return
    const source = world.directory.get(account) ?? null
    const target = dice.pick(PLACES.filter((place) => place !== source))
    const row = { move: { account: account as never, source, target, version: 1, step: 'hold' as const }, epoch: 0 }
    this.rows.set(account, row)
    this.runners.push(takeOver(row, world))
    told.moves += 1
  }

  /** The runner died, or only seemed to: then it goes on beside the new one. */
  takeOver(): void {
    const { dice, world, told } = this
    if (this.rows.size === 0) return
    const row = dice.pick([...this.rows.values()])
    if (dice.chance(0.5)) this.runners = this.runners.filter(({ move }) => move.account !== row.move.account)
    this.runners.push(takeOver(row, world))
    told.takenOver += 1
  }

  goBack(): void {
    const { dice, world, told } = this
    if (this.rows.size === 0) return
    const row = dice.pick([...this.rows.values()])
    if (!goBack(row, world)) return
    this.runners.push(takeOver(row, world))
    told.backs += 1
  }

  run(): void {
    if (this.runners.length > 0) this.advance(this.dice.pick(this.runners))
  }

  advance(runner: Runner): void {
    const row = this.rows.get(runner.move.account)
    const next = advance(runner, row, this.world)
    this.runners = this.runners.filter((other) => other !== runner)
    if (next === 'ended') {
      this.rows.delete(runner.move.account)
      if (runner.step === 'back') this.judgeBack(runner)
    } else if (next) this.runners.push(next)
  }

  loseLog(): void {
    this.world.log = { incarnation: this.world.log.incarnation + 1, messages: [] }
  }

  watch(): void {
    const { world } = this
    for (const account of ACCOUNTS)
      if (countOpen(world, account) > 1) world.violations.push(`account ${account} is open in two databases`)
  }

  /** After the way back all is as before: the source has the account, and the target nothing. */
  judgeBack({ move }: Runner): void {
    const { world } = this
    const target = world.sites.get(move.target)!
    const left = [...target.webhooks.values()].some(({ account }) => account === move.account)
    if (left || rowsOf(target, move.account).length > 0)
      world.violations.push(`the target keeps rows of ${move.account}`)
    if (
      ![...world.sites.get(move.source)!.webhooks.values()].some((row) => row.account === move.account && row.isLinked)
    )
      world.violations.push(`the source lost ${move.account}`)
  }

  /** No more publications: moves end, and what waits is delivered. */
  rest(): void {
    const { world } = this
    for (const site of world.sites.values()) while (site.begun.size > 0) this.commit(site)
    for (const row of this.rows.values()) this.runners.push(takeOver(row, world))
    for (let round = 0; round < 400; round += 1) {
      let isBusy = this.rows.size > 0
      for (const site of world.sites.values()) {
        isBusy = this.calm(site) || isBusy
        this.watch()
      }
      for (const runner of [...this.runners]) this.advance(runner)
      if (!isBusy) return
    }
    world.violations.push('nothing comes to rest')
  }

  /** One round of a database. Whether there was something to do. */
  calm(site: Site): boolean {
    const { world } = this
    const { log } = world
    const isBehind = site.intake.incarnation !== log.incarnation || site.intake.sequence < log.messages.length
    // A loss is found without an event that waits, too.
    const isLost = site.relayed.incarnation !== log.incarnation
    if (isLost && site.outbox.length === 0) site.outbox.push('')
    const isBusy = isBehind || isLost || site.outbox.length > 0 || site.queue.size > 0
    for (let n = 0; n < 20; n += 1) relay(world, site, true)
    for (let n = 0; n < 20; n += 1) takeIn(world, site)
    for (const event of [...site.queue]) route(world, site, event)
    let isOpen = false
    for (const [key, row] of [...site.rows]) {
      if (row.state === 'waiting' && !site.resting.has(accountOf(key.split(' ')[1]!))) claim(world, key, row)
      if (row.state === 'leased') settle(row, true)
      isOpen ||= row.state !== 'ended'
    }
    return isBusy || isOpen
  }

  /** Every accepted event was delivered to each of its webhooks, and each account is in one database, as the directory says. */
  judge(): void {
    const { world } = this
    for (const [event, webhooks] of world.accepted)
      for (const webhook of webhooks) {
        const key = keyOf(event, webhook)
        if (!world.posts.has(key)) world.violations.push(`${key} was lost`)
      }
    for (const account of ACCOUNTS) {
      const at = world.directory.get(account) ?? null
      for (const site of world.sites.values()) {
        const has = [...site.webhooks.values()].filter((row) => row.account === account).length
        if (has !== (site.name === at ? 2 : 0)) world.violations.push(`${site.name} has ${has} webhooks of ${account}`)
      }
    }
  }
}
