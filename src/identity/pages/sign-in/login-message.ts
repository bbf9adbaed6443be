import type { TextKey, Texts } from '../../../base/language/texts.ts'
import type { Problem } from '../../../http/problem/problem.ts'

/** Text for a refused proof: a password, a code or a passkey. `failed` is that of a failed sign-in. */
export function describeLoginProblem(
  texts: Texts,
  { code, headers }: Problem,
  failed: TextKey = 'sign-in.failed',
): string {
  const seconds = headers['retry-after']
  if (code === 'rate_limited' && seconds !== undefined) return texts.say('sign-in.throttled', { seconds })
  if (code === 'login_failed') return texts.say(failed)
  if (code === 'second_factor_failed') return texts.say('proof.failed')
  if (code === 'overloaded') return texts.say('problem.unavailable.text')
  return texts.say('problem.unknown.text')
}
