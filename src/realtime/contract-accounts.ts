import type { Clock } from '../clock.ts'
import { loadContract } from '../contract/contract.ts'
import { Problem } from '../http/problem.ts'
import type { AccountId } from '../id.ts'
import type { Database } from '../postgres/database.ts'

/** How long an answer is used again: a contract keeps its account, and one that was deleted is refused after this. */
export const CONTRACT_HELD_MS = 5_000

/** Contracts that are remembered. */
const CONTRACTS_LIMIT = 10_000

/** The account of a contract; undefined for one that does not exist. */
export type FindContractAccount = (db: Database, id: string) => Promise<AccountId | undefined>

/** Builds the look-up. A crowd that returns after an interruption asks for the same contracts. */
export function buildContractAccounts(clock: Pick<Clock, 'now'>): FindContractAccount {
  const held = new Map<string, { account: AccountId; readAtMs: number }>()
  return async (db, id) => {
    const known = held.get(id)
    if (known && Math.abs(clock.now() - known.readAtMs) < CONTRACT_HELD_MS) return known.account
    held.delete(id)
    const account = await readAccount(db, id)
    if (account === undefined) return undefined
    held.set(id, { account, readAtMs: clock.now() })
    const [oldest] = held.keys()
    if (held.size > CONTRACTS_LIMIT && oldest !== undefined) held.delete(oldest)
    return account
  }
}

async function readAccount(db: Database, id: string): Promise<AccountId | undefined> {
  try {
    return (await loadContract(db, { id, scope: 'all' })).account
  } catch (error) {
    if (error instanceof Problem && error.status < 500) return undefined
    throw error
  }
}
