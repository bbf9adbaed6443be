import { createRequire } from 'node:module'
import type * as LanguageCommon from '@zxcvbn-ts/language-common'

let leaked: ReadonlySet<string> | undefined

/**
 * Whether a text, in lower case, is in the published list of the most common leaked passwords (49,000, of the package
 * `@zxcvbn-ts/language-common`). The first call unpacks the list in some 60 ms, so that a start does not pay for it.
 */
export function isLeakedPassword(folded: string): boolean {
  leaked ??= readList()
  return leaked.has(folded)
}

function readList(): ReadonlySet<string> {
  const load = createRequire(import.meta.url)
  const { dictionary } = load('@zxcvbn-ts/language-common') as typeof LanguageCommon
  return new Set(dictionary['passwords-common'])
}
