import type { SecretCount } from './stored-secret.store.ts'

interface RotationStatus {
  lines: string[]
  /** Secrets under an older key of SECRET_KEY. */
  stale: number
  /** Secrets that no key decrypts. */
  unreadable: number
  /** Whether every secret is encrypted under the first key. */
  isEnded: boolean
}

/** Describes counted secrets by `keyIds` of SECRET_KEY. `isWhole`: every database was counted. */
export function describeRotation(
  counts: readonly SecretCount[],
  keyIds: readonly string[],
  isWhole = true,
): RotationStatus {
  const [current = '', ...older] = keyIds
  const standing = (keyId: string) =>
    keyId === current ? 'first key' : older.includes(keyId) ? 'older key' : 'opens under no key of SECRET_KEY'
  const sum = (word: string) =>
    counts.filter(({ keyId }) => standing(keyId) === word).reduce((total, { secrets }) => total + secrets, 0)
  const stale = sum('older key')
  const unreadable = sum('opens under no key of SECRET_KEY')
  const rows = counts.map(({ place, keyId, secrets, endsAt }) =>
    [place.padEnd(22), keyId.padEnd(9), String(secrets).padStart(8), ` ${standing(keyId)}${describeEnd(endsAt)}`].join(
      ' ',
    ),
  )
  return {
    lines: [
      `SECRET_KEY seals under ${current}${older.length > 0 ? `, and opens ${older.join(', ')} too` : ''}.`,
      `${'table'.padEnd(22)} ${'key'.padEnd(9)} ${'secrets'.padStart(8)}`,
      ...rows,
      ...conclude({ stale, unreadable, older, isWhole, lastEnd: findLastEnd(counts, older) }),
    ],
    stale,
    unreadable,
    isEnded: isWhole && stale === 0 && unreadable === 0,
  }
}

function describeEnd(endsAt: Date | null): string {
  return endsAt === null ? '' : `, expires by ${endsAt.toISOString()}`
}

/** Expiry of the last expiring secret under an older key; null without one. */
function findLastEnd(counts: readonly SecretCount[], older: readonly string[]): Date | null {
  const ends = counts.flatMap(({ keyId, endsAt }) => (older.includes(keyId) && endsAt ? [endsAt.getTime()] : []))
  return ends.length > 0 ? new Date(Math.max(...ends)) : null
}

function conclude(facts: {
  stale: number
  unreadable: number
  older: readonly string[]
  isWhole: boolean
  lastEnd: Date | null
}): string[] {
  const { stale, unreadable, older, isWhole, lastEnd } = facts
  const lines: string[] = []
  if (unreadable > 0)
    lines.push(`${unreadable} secrets open under no key: add the key that is missing, see docs/operations.md.`)
  if (stale > 0) {
    const end = lastEnd ? ` Those that expire are gone at ${lastEnd.toISOString()}.` : ''
    lines.push(`${stale} secrets are sealed under an older key. Run: signalbox secrets reencrypt.${end}`)
  }
  if (!isWhole) lines.push('A database was not counted: keep all keys in SECRET_KEY, and run the command again.')
  else if (stale === 0 && unreadable === 0)
    lines.push(
      older.length > 0
        ? 'The rotation has ended: remove the older keys from SECRET_KEY and restart every process.'
        : 'Every stored secret is sealed under the only key.',
    )
  return lines
}
