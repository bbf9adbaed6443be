import { isStorableText } from '../../../base/stored-text.ts'
import { isEmailAddress } from '../../../http/shape/formats.ts'
import { cleanShownName } from '../../../http/shape/shown-name.ts'
import type { ProviderIdentity } from '../engine.ts'
import type { ReadProfile } from './provider/provider-declaration.ts'

/** Maximum lengths of subject (OpenID Connect Core 1.0 section 2), name and picture URL, in characters. */
const SUBJECT_LIMIT = 255
const NAME_LIMIT = 200
const URL_LIMIT = 2048

/** The identity in a provider's claims, within limits. A malformed address is missing; undefined without a subject. */
export function cleanProfile(
  provider: string,
  profile: ReadProfile,
  isEmailTrusted: boolean,
): ProviderIdentity | undefined {
  const { subject } = profile
  if (typeof subject !== 'string' || subject === '' || subject.length > SUBJECT_LIMIT || hasControl(subject))
    return undefined
  const email = readEmail(profile.email)
  return {
    provider,
    subject,
    email,
    isEmailVerified: email !== null && profile.isEmailVerified && isEmailTrusted,
    name: cleanName(profile.name),
    avatarUrl: readHttpsUrl(profile.avatarUrl),
  }
}

function hasControl(text: string): boolean {
  return /\p{Cc}/u.test(text) || !isStorableText(text)
}

function readEmail(value: unknown): string | null {
  return typeof value === 'string' && isEmailAddress(value) ? value : null
}

/** A name without the characters that no user may choose, cut to its limit; null for an empty result. */
export function cleanName(value: unknown): string | null {
  const line = typeof value === 'string' ? cleanShownName(value.slice(0, URL_LIMIT)) : null
  return line === null ? null : cleanShownName([...line].slice(0, NAME_LIMIT).join(''))
}

function readHttpsUrl(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > URL_LIMIT) return null
  const url = URL.parse(value)
  return url?.protocol === 'https:' && url.username === '' ? url.href : null
}
