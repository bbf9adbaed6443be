import { buildTimedCache } from '../base/cache.ts'
import type { Clock } from '../base/clock.ts'
import type { AccountId } from '../base/id.ts'
import { Problem } from '../http/problem/problem.ts'
import type { Database } from '../postgres/statement/database.ts'
import type { FindContractAccount } from '../realtime/authorization/authorization.ts'
import { loadContract } from './contract.ts'

/** Lifetime of a cached answer: a contract keeps its account, and a deleted one is refused after this. */
export const CONTRACT_CACHE_MS = 5_000

/** Most contracts that are remembered. */
const CONTRACTS_LIMIT = 10_000

/** Builds the look-up. A crowd that returns after an interruption asks for the same contracts. */
export function buildContractAccounts(clock: Pick<Clock, 'now'>): FindContractAccount {
  const cache = buildTimedCache<string, AccountId>({ limit: CONTRACTS_LIMIT, clock })
  return async (db, id) => {
    const cached = cache.find(id)
    if (cached !== undefined) return cached
    const account = await readAccount(db, id)
    if (account !== undefined) cache.put(id, account, CONTRACT_CACHE_MS)
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
