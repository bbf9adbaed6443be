import type { AccountId } from '../../base/id.ts'

/** A database that holds accounts: the name of a cell; null for home. */
export type Place = string | null

/** Writes that a database lets pass for an account (`fence_lets` in the migrations). */
export type FenceState = 'open' | 'held' | 'closed' | 'gone'

/** The steps of a move, in their order; `back` takes the place of what is left, until `switch` has begun. */
export type MoveStep = 'hold' | 'drain' | 'copy' | 'switch' | 'release' | 'back'

/** A move of an account that has not ended. */
export interface AccountMove {
  account: AccountId
  source: Place
  target: Place
  /** The version of the directory after the move. */
  version: number
  step: MoveStep
}

/**
 * Effects of a step, each in one database and one transaction, and each repeatable: a process that takes a step over begins
 * it anew. `fence` waits for the transactions that the fence let pass before. `await` checks that nothing is left.
 */
export type MoveEffect =
  /** Sets the fence. */
  | { kind: 'fence'; at: Place; state: FenceState }
  /** Events that wait for their routing, and tests that wait for their attempt. */
  | { kind: 'await-routing'; at: Place }
  /** Events that wait for the event log. */
  | { kind: 'await-outbox'; at: Place }
  /** The intake has read the log as far as it reaches now, once the outboxes are empty. */
  | { kind: 'await-intake'; at: Place; of: 'told' | 'recorded' }
  /** No row that waits is claimed any more. */
  | { kind: 'rest'; at: Place }
  /** Attempts and leases under way, results that are not added up. */
  | { kind: 'await-attempts'; at: Place }
  /** Closes the fence if nothing has come under way meanwhile, judged behind the lock. */
  | { kind: 'close'; at: Place }
  /** Transactions that began before the fence was closed: they may have read what it was. */
  | { kind: 'await-transactions'; at: Place }
  | { kind: 'copy'; from: Place; to: Place }
  /** The target still has what was copied last; else a failover lost it, and it is copied again. */
  | { kind: 'verify'; at: Place }
  /** The fence is closed as the drain left it; else a failover opened it, and the move goes back. */
  | { kind: 'keep-closed'; at: Place }
  /** Lets the copied rows be claimed, with the fence open. In `switch` only what is verified is opened. */
  | { kind: 'open'; at: Place }
  /** The directory says where the account is. */
  | { kind: 'direct'; to: Place }
  /** The fence is `gone`, and no event is routed to what is left here. */
  | { kind: 'leave'; at: Place }
  /** Deletes the rows of the account. */
  | { kind: 'clear'; at: Place }
  /** The move is over. */
  | { kind: 'end' }

const NEXT: Readonly<Record<MoveStep, MoveStep | undefined>> = {
  hold: 'drain',
  drain: 'copy',
  copy: 'switch',
  switch: 'release',
  release: undefined,
  back: undefined,
}

/** The step after this one; undefined after the last. */
export function findNextStep(step: MoveStep): MoveStep | undefined {
  return NEXT[step]
}

/** Whether a move in this step may go back: until another database may have written for the account. */
export function canGoBack(step: MoveStep): boolean {
  return step === 'hold' || step === 'drain' || step === 'copy'
}

/** The effects of a step in their order, its fences first: a failover may have lost a database's last writes. Pure. */
export function planStep(move: AccountMove): MoveEffect[] {
  const { source, target, step } = move
  const isFromHome = source === null
  /** Home records events of the account too, for the log; while it moves there are none. */
  const untold: MoveEffect[] = isFromHome ? [] : [{ kind: 'fence', at: null, state: 'closed' }]
  switch (step) {
    case 'hold':
      return [{ kind: 'fence', at: source, state: 'held' }, ...untold]
    case 'drain':
      return [{ kind: 'fence', at: source, state: 'held' }, ...untold, ...planDrain(move)]
    case 'copy':
      return [
        { kind: 'keep-closed', at: source },
        ...untold,
        { kind: 'copy', from: source, to: target },
        { kind: 'verify', at: target },
        { kind: 'keep-closed', at: source },
      ]
    case 'switch':
      // The source stays closed until the target has the account, so that no two of them are open.
      return [
        { kind: 'fence', at: source, state: 'closed' },
        { kind: 'open', at: target },
        { kind: 'direct', to: target },
        ...planLeave(move),
      ]
    case 'release':
      return [...planLeave(move), { kind: 'clear', at: source }, { kind: 'end' }]
    case 'back':
      // Attempts may be under way: their results are taken.
      return [
        { kind: 'fence', at: source, state: 'held' },
        ...(target === null ? untold : []),
        { kind: 'clear', at: target },
        ...(isFromHome ? [] : ([{ kind: 'leave', at: null }] as const)),
        ...(target === null ? [] : ([{ kind: 'leave', at: target }] as const)),
        { kind: 'open', at: source },
        { kind: 'end' },
      ]
  }
}

function planDrain({ source, target }: AccountMove): MoveEffect[] {
  return [
    // Messages of home about the account reach the source while it still takes it.
    ...(source === null
      ? []
      : ([
          { kind: 'await-outbox', at: null },
          { kind: 'await-intake', at: source, of: 'told' },
        ] as const)),
    { kind: 'await-routing', at: source },
    { kind: 'rest', at: source },
    { kind: 'await-attempts', at: source },
    { kind: 'close', at: source },
    { kind: 'await-transactions', at: source },
    // The target does not append what it is given, and home has given its webhooks the events before it is given them.
    { kind: 'await-outbox', at: source },
    ...(target === null
      ? ([
          { kind: 'await-intake', at: null, of: 'recorded' },
          { kind: 'await-routing', at: null },
        ] as const)
      : []),
  ]
}

/** Home tells again as soon as the account is elsewhere. */
function planLeave({ source, target }: AccountMove): MoveEffect[] {
  return [
    { kind: 'leave', at: source },
    ...(source !== null && target !== null ? ([{ kind: 'leave', at: null }] as const) : []),
  ]
}
