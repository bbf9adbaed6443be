import type { Database } from '../../postgres/statement/database.ts'
import { listUsedKeys, type SecretPlace, type UsedKey } from './stored-secret.store.ts'

/** Upper bound of each count: this many, or more. */
const COUNT_LIMIT = 10_000

/** The facts of the component. */
export interface SecretFacts {
  /** Secrets that no key of SECRET_KEY decrypts. */
  unreadable: number
  unreadable_by_table: Partial<Record<SecretPlace, number>>
  /** The ids of the keys that are missing. An id is a hash: it does not reveal the key. */
  missing_keys: string[]
  /** Whether some secrets are encrypted under another key than the first one. */
  is_rotating: boolean
  remedy: string | null
}

const REMEDY =
  'Add the missing keys to SECRET_KEY again, after the first one, and restart every process. If they are lost, rotate the secrets, set the headers of webhooks again, and switch their asymmetric signatures off and on.'

/** Evaluates the used keys. `keyIds`: those of SECRET_KEY, the first one first. Pure. */
function decideSecretFacts(used: readonly UsedKey[], keyIds: readonly string[]): SecretFacts {
  const missing = used.filter((item) => !item.isListed)
  const byTable: Partial<Record<SecretPlace, number>> = {}
  for (const { place, secrets } of missing) byTable[place] = (byTable[place] ?? 0) + secrets
  return {
    unreadable: missing.reduce((sum, { secrets }) => sum + secrets, 0),
    unreadable_by_table: byTable,
    missing_keys: [...new Set(missing.map(({ keyId }) => keyId))].sort(),
    is_rotating: used.some(({ keyId, isListed }) => isListed && keyId !== keyIds[0]),
    remedy: missing.length > 0 ? REMEDY : null,
  }
}

/** Reads the facts of stored secrets. Some index entries, and a bounded count where a key is missing. */
export async function readSecretFacts(db: Database, keyIds: readonly string[]): Promise<SecretFacts> {
  return decideSecretFacts(await listUsedKeys(db, { keyIds, limit: COUNT_LIMIT }), keyIds)
}

/** Adds the facts of cells to those of home. Pure. */
export function addSecretFacts(home: SecretFacts, cells: readonly SecretFacts[]): SecretFacts {
  const all = [home, ...cells]
  const byTable: Partial<Record<SecretPlace, number>> = {}
  for (const { unreadable_by_table: tables } of all)
    for (const [place, count] of Object.entries(tables) as [SecretPlace, number][])
      byTable[place] = (byTable[place] ?? 0) + count
  return {
    unreadable: all.reduce((sum, { unreadable }) => sum + unreadable, 0),
    unreadable_by_table: byTable,
    missing_keys: [...new Set(all.flatMap(({ missing_keys: missing }) => missing))].sort(),
    is_rotating: all.some(({ is_rotating: isRotating }) => isRotating),
    remedy: all.find(({ remedy }) => remedy !== null)?.remedy ?? null,
  }
}

/** `degraded` while no key decrypts a stored secret (docs/contract/configuration.md#secret-encryption). */
export function decideSecretHealth(facts: SecretFacts): 'operational' | 'degraded' {
  return facts.unreadable > 0 ? 'degraded' : 'operational'
}

/** The error of a start whose SECRET_KEY decrypts none of the stored secrets. Undefined otherwise. */
export async function findLostKey(db: Database, keyIds: readonly string[]): Promise<string | undefined> {
  const used = await listUsedKeys(db, { keyIds, limit: COUNT_LIMIT })
  if (used.length === 0 || used.some(({ isListed }) => isListed)) return undefined
  const { unreadable, missing_keys: missing } = decideSecretFacts(used, keyIds)
  return `secret_key_mismatch: SECRET_KEY opens none of the ${unreadable} secrets in the database. They need the key ${missing.join(', ')}; SECRET_KEY has ${keyIds.join(', ')}. Set the SECRET_KEY that this database was used with: see docs/operations.md, secret_key_mismatch`
}
