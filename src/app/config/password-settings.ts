import { DEFAULT_HASH_COST, findSafeMemory, type HashCost } from '../../identity/password/hash-cost.ts'
import type { SignUpRules } from '../../identity/sign-up/sign-up.ts'
import type { AppEnv, Values } from './config-variables.ts'

/** Settings of sign-up and of sign-in by mail, which need no administrator. */
export function readSignUp(values: Values) {
  const signUp: SignUpRules = { mode: values.SIGN_UP ?? 'closed', domains: values.SIGN_UP_EMAIL_DOMAINS ?? [] }
  return { signUp, signInByMail: values.SIGN_IN_BY_MAIL ?? false }
}

/** The cost of a password hash by the settings. */
export function readHashCost(values: Values): HashCost {
  return {
    memory: values.PASSWORD_HASH_MEMORY ?? DEFAULT_HASH_COST.memory,
    passes: values.PASSWORD_HASH_PASSES ?? DEFAULT_HASH_COST.passes,
  }
}

/** A sentence for a hash of production below OWASP's cost (docs/contract/configuration.md#cost-of-password-hashes). */
export function findCheapHash(values: Values, appEnv: AppEnv): string[] {
  const { memory, passes } = readHashCost(values)
  const least = findSafeMemory(passes)
  if (appEnv !== 'production' || memory >= least) return []
  return [
    `PASSWORD_HASH_MEMORY must be at least ${least} (KiB) in production with this PASSWORD_HASH_PASSES: a cheaper hash is guessed too fast (OWASP Password Storage Cheat Sheet). Raise one of them, or remove both.`,
  ]
}
