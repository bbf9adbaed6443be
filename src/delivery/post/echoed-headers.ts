import type { PostOutcome } from './signed-post.ts'

/** Characters of a value that identify it: a shorter one is a word of many answers. */
const SHORTEST = 8

const HIDDEN = '[header]'

/**
 * An outcome without the values of the receiver's own headers, which a receiver may repeat in its answer: in whole, behind
 * a scheme (`Bearer <token>`), and cut at the end of the excerpt. Pure.
 */
export function hideEchoed(outcome: PostOutcome, headers: Readonly<Record<string, string>>): PostOutcome {
  const secrets = listSecrets(headers)
  if (secrets.length === 0) return outcome
  const { responseExcerpt: excerpt, responseHeaders } = outcome
  const shown = responseHeaders && Object.entries(responseHeaders).map(([name, value]) => [name, hide(value, secrets)])
  return {
    ...outcome,
    responseExcerpt: excerpt && hideCut(hide(excerpt, secrets), secrets),
    responseHeaders: shown && Object.fromEntries(shown),
  }
}

/** Values and what follows their scheme, as they stand and as JSON has them, the longest first. */
function listSecrets(headers: Readonly<Record<string, string>>): string[] {
  const values = Object.values(headers).flatMap((value) => [value, value.slice(value.indexOf(' ') + 1)])
  const forms = values.flatMap((value) => [value, JSON.stringify(value).slice(1, -1)])
  return [...new Set(forms)]
    .filter(({ length }) => length >= SHORTEST)
    .sort((form, other) => other.length - form.length)
}

function hide(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text)
}

function hideCut(text: string, secrets: readonly string[]): string {
  for (const secret of secrets)
    for (let length = Math.min(secret.length - 1, text.length); length >= SHORTEST; length -= 1)
      if (text.endsWith(secret.slice(0, length))) return text.slice(0, -length) + HIDDEN
  return text
}
