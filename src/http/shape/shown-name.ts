import { invalidField } from '../problem/problem.ts'

/**
 * Controls, line ends, and characters without a shape of their own that reorder or hide others, or are letters by their
 * class: overrides and isolates of direction, zero-width spaces, fillers of Hangul, vowels of Khmer that are not written,
 * annotations, tags. The joiners of letters and emoji and the selectors of variants are none.
 */
const UNSAFE =
  /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}]/u
/** The pattern without dots of Braille is a symbol by its class. */
const VISIBLE = /(?!\u2800)[\p{L}\p{N}\p{P}\p{S}]/u

const ALL_UNSAFE = new RegExp(`${UNSAFE.source}+`, 'gu')

/** Fault of a shown name; undefined for none. Pure. */
export function findNameFault(name: string): 'unsafe_character' | 'blank' | undefined {
  if (UNSAFE.test(name)) return 'unsafe_character'
  return VISIBLE.test(name) ? undefined : 'blank'
}

const MESSAGES = {
  unsafe_character: 'has a control, direction or invisible character. Remove it',
  blank: 'has nothing visible. Write a letter or a digit',
} as const

/**
 * Checks a name chosen by somebody whom its readers do not know, which they read beside the texts of the service: that
 * of a user, an account, a connection, an app that registers itself (docs/contract/identity.md#names). Throws a 422 on
 * `path`.
 */
export function checkShownName(name: string, path = 'name'): void {
  const fault = findNameFault(name)
  if (fault) throw invalidField(path, fault, MESSAGES[fault])
}

/** A name from another system as `checkShownName` accepts it, with a space for what it refuses; null without a visible rest. Pure. */
export function cleanShownName(name: string): string | null {
  const line = name.toWellFormed().replace(ALL_UNSAFE, ' ').trim()
  return VISIBLE.test(line) ? line : null
}
