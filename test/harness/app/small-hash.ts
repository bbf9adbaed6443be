import { systemRandom } from '../../../src/base/random.ts'
import { buildPasswordHashing } from '../../../src/identity/password/password.ts'

/**
 * Cost of a password hash in tests, which compute hundreds: one at the default cost takes some 30 ms of a processor.
 */
export const SMALL_HASH_COST = { memory: 64, passes: 1 }

/** `SMALL_HASH_COST` as variables of the environment. Production refuses them. */
export const SMALL_HASH_ENVIRONMENT = {
  PASSWORD_HASH_MEMORY: String(SMALL_HASH_COST.memory),
  PASSWORD_HASH_PASSES: String(SMALL_HASH_COST.passes),
}

/** Hashes passwords at this cost. */
export const testPasswords = buildPasswordHashing(SMALL_HASH_COST, systemRandom)
