import {
  type AccountMove,
  canGoBack,
  findNextStep,
  type MoveEffect,
  type MoveStep,
  type Place,
  planStep,
} from '../../../src/carriage/move/move-plan.ts'
import { GLOBAL, type PlantedFault, rowsOf, type Site, type World } from './world.ts'

/** A process that runs a move: it does one effect after the other, and may stop between any two. */
export interface Runner {
  move: AccountMove
  epoch: number
  step: MoveStep
  plan: MoveEffect[]
  done: number
}

/** The move in home, with the runner that has it. */
export interface MoveRow {
  move: AccountMove
  epoch: number
}

const siteOf = (world: World, place: Place): Site => world.sites.get(place)!

/** The plan of a step, with the planted faults. */
function planFaulty(move: AccountMove, faults: ReadonlySet<PlantedFault>): MoveEffect[] {
  const skipped = (effect: MoveEffect): boolean => {
    switch (effect.kind) {
      case 'await-attempts':
      case 'rest':
        return faults.has('attempts not awaited') || faults.has('no drain')
      case 'await-routing':
        return faults.has('no drain')
      case 'await-outbox':
        return faults.has('no drain') || faults.has('outbox not awaited')
      case 'await-intake':
        return (
          faults.has('no drain') ||
          faults.has(effect.of === 'told' ? 'told events not awaited' : 'recorded events not awaited')
        )
      case 'fence':
        return faults.has('home tells during a move') && effect.at === null && move.source !== null
      default:
        return false
    }
  }
  const plan = planStep(move).filter((effect) => !skipped(effect))
  if (move.step === 'back' && faults.has('back opens before it clears'))
    return plan.sort((a, b) => Number(b.kind === 'open') - Number(a.kind === 'open'))
  if (!faults.has('switched before the copy')) return plan
  if (move.step === 'copy') return planStep({ ...move, step: 'switch' }).slice(0, 3)
  return move.step === 'switch' ? [...planStep({ ...move, step: 'copy' }), ...plan] : plan
}

/** Takes a move over: runners before this one change nothing any more, at any database that it has told. */
export function takeOver(row: MoveRow, world: World): Runner {
  row.epoch += 1
  for (const site of world.sites.values()) site.epoch.set(row.move.account, row.epoch)
  return beginStep(row.move, row.epoch, world)
}

function beginStep(move: AccountMove, epoch: number, { faults }: World): Runner {
  return { move: { ...move }, epoch, step: move.step, plan: planFaulty(move, faults), done: 0 }
}

/** Asks for the way back. */
export function goBack(row: MoveRow, { faults }: World): boolean {
  const mayGo = canGoBack(row.move.step) || (faults.has('back after the switch') && row.move.step !== 'back')
  if (mayGo) row.move = { ...row.move, step: 'back' }
  return mayGo
}

/** Does the next effect. Returns the runner as it goes on; undefined when the move is over, or another one has it. */
export function advance(runner: Runner, row: MoveRow | undefined, world: World): Runner | 'ended' | undefined {
  const effect = runner.plan[runner.done]
  const isStale = row?.epoch !== runner.epoch
  if (isStale && !world.faults.has('stalled runner goes on')) return undefined
  if (effect?.kind === 'end') return isStale ? undefined : 'ended'
  if (effect) {
    if (!perform(effect, runner.move, world)) return { ...runner, done: 0 }
    return { ...runner, done: runner.done + 1 }
  }
  const next = findNextStep(runner.step)
  // The step is written in home, only by who has the move.
  if (isStale || !next || row.move.step !== runner.step)
    return isStale ? undefined : beginStep(row!.move, row!.epoch, world)
  row.move = { ...row.move, step: next }
  return beginStep(row.move, row.epoch, world)
}

/** Whether it is done; false waits. */
function perform(effect: MoveEffect, move: AccountMove, world: World): boolean {
  const { account } = move
  const { faults } = world
  const isFree = (site: Site) => faults.has('no lock') || ![...site.begun].some((begun) => begun.account === account)
  const isRouted = (site: Site) => ![...site.queue].some((event) => site.events.get(event)?.account === account)
  const isIdle = (site: Site) => !rowsOf(site, account).some(([, row]) => row.state === 'leased')
  switch (effect.kind) {
    case 'fence': {
      const site = siteOf(world, effect.at)
      if (!isFree(site)) return false
      site.fence.set(account, effect.state)
      return true
    }
    case 'await-routing':
      return isRouted(siteOf(world, effect.at))
    case 'await-outbox': {
      const site = siteOf(world, effect.at)
      return !site.outbox.some((event) => site.events.get(event)?.account === account)
    }
    case 'await-intake': {
      const { intake } = siteOf(world, effect.at)
      const { relayed } = siteOf(world, effect.of === 'told' ? null : move.source)
      return intake.incarnation === relayed.incarnation && intake.sequence >= relayed.sequence
    }
    case 'rest':
      siteOf(world, effect.at).resting.add(account)
      return true
    case 'await-attempts':
      return isIdle(siteOf(world, effect.at))
    case 'close': {
      const site = siteOf(world, effect.at)
      const isHasty = faults.has('no drain') || faults.has('attempts not awaited')
      if (!isFree(site) || !(isHasty || (isRouted(site) && isIdle(site)))) return false
      site.fence.set(account, 'closed')
      return true
    }
    case 'await-transactions':
      return isFree(siteOf(world, effect.at))
    case 'verify':
      return faults.has('copy not verified') || siteOf(world, effect.at).copied.has(account)
    case 'keep-closed':
      return siteOf(world, effect.at).fence.get(account) === 'closed'
    case 'copy':
      copy(siteOf(world, effect.from), siteOf(world, effect.to), account, faults)
      return true
    case 'open': {
      const site = siteOf(world, effect.at)
      const isVerified = faults.has('copy not verified') || site.copied.has(account)
      if (move.step === 'switch' && !isVerified) {
        copy(siteOf(world, move.source), site, account, faults)
        return false
      }
      site.resting.delete(account)
      site.fence.set(account, 'open')
      return true
    }
    case 'direct':
      world.directory.set(account, effect.to)
      return true
    case 'leave': {
      const site = siteOf(world, effect.at)
      if (!isFree(site)) return false
      site.fence.set(account, 'gone')
      if (!faults.has('links stay at the source'))
        for (const webhook of site.webhooks.values()) if (webhook.account === account) webhook.isLinked = false
      return true
    }
    case 'clear':
      clear(siteOf(world, effect.at), account)
      return true
    case 'end':
      return true
  }
}

function copy(from: Site, to: Site, account: string, faults: ReadonlySet<PlantedFault>): void {
  clear(to, account)
  for (const [webhook, row] of from.webhooks) if (row.account === account) to.webhooks.set(webhook, { ...row })
  for (const [key, row] of rowsOf(from, account)) to.rows.set(key, { ...row })
  for (const [event, stored] of from.events)
    if (stored.account === account && !to.events.has(event)) to.events.set(event, { ...stored })
  to.resting.add(account)
  to.copied.add(account)
  if (!faults.has('ordinals not raised')) to.sequence = Math.max(to.sequence, from.sequence)
}

/** What global webhooks have of the account stays, with its events. */
function clear(site: Site, account: string): void {
  for (const [webhook, row] of site.webhooks) if (row.account === account) site.webhooks.delete(webhook)
  for (const [key] of rowsOf(site, account)) site.rows.delete(key)
  const kept = new Set(
    [...site.rows.keys()].filter((key) => key.endsWith(` ${GLOBAL}`)).map((key) => key.split(' ')[0]),
  )
  for (const [event, stored] of site.events)
    if (stored.account === account && !kept.has(event) && !site.queue.has(event)) site.events.delete(event)
  site.resting.delete(account)
  site.copied.delete(account)
}

/** A failover of the target, before it is open, loses what was copied. */
export function loseCopy({ move }: MoveRow, world: World): void {
  const site = siteOf(world, move.target)
  const isOpen = site.fence.get(move.account) === 'open'
  if ((move.step === 'copy' || move.step === 'switch') && !isOpen) clear(site, move.account)
}

/** How many databases may begin something for an account. */
export function countOpen(world: World, account: string): number {
  return [...world.sites.values()].filter((site) => {
    const state = site.fence.get(account) ?? (site.name === null ? 'open' : 'gone')
    return state === 'open' || state === 'held'
  }).length
}
