import { isLoopbackHost } from '../../http/request/local-request.ts'
import { classifyAddress } from '../../outbound/guard/address.ts'
import type { FindingCode } from './finding.ts'
import { isGuessableSecret, isGuessableToken } from './secret-strength.ts'

/** A setting that the start refuses, and that `signalbox doctor` reports as a failure. */
export interface RefusedSetting {
  code: FindingCode
  /** The setting and the broken rule. Never its value. */
  detail: string
  remedy: string
}

/** Given settings to check. */
export interface JudgedSettings {
  appEnv: string
  /** `NODE_ENV`, which this program does not read otherwise. */
  nodeEnv: string | undefined
  baseUrl: string | undefined
  /** The secrets by setting. */
  secrets: Readonly<Record<string, readonly string[]>>
  metricsToken: string | undefined
}

/** The rules of a start and of `doctor` for an environment (docs/contract/configuration.md#environments). */
export function findRefusedSettings(given: JudgedSettings): RefusedSetting[] {
  return [...judgeEnvironment(given), ...judgeBaseUrl(given), ...judgeStrength(given)]
}

function judgeEnvironment({ appEnv, nodeEnv }: JudgedSettings): RefusedSetting[] {
  if (appEnv !== 'development' || nodeEnv !== 'production') return []
  return [
    {
      code: 'environment_contradicts',
      detail: 'APP_ENV is development, its default, while NODE_ENV is production: development shows mails and metrics.',
      remedy: 'Set APP_ENV=production, or take NODE_ENV away on a machine of development.',
    },
  ]
}

/** `BASE_URL`: in production https or loopback, in development no address that others reach. */
export function judgeBaseUrl({ appEnv, baseUrl }: Pick<JudgedSettings, 'appEnv' | 'baseUrl'>): RefusedSetting[] {
  const url = baseUrl === undefined ? null : URL.parse(baseUrl)
  if (appEnv === 'production' && (url === null || (url.protocol !== 'https:' && !isLoopbackHost(url.host))))
    return [
      {
        code: 'base_url_missing',
        detail: url === null ? 'BASE_URL is not set in production.' : 'BASE_URL is not an https URL in production.',
        remedy: 'Set BASE_URL to the https address that users see: links in mails, cookies and pages need it.',
      },
    ]
  if (appEnv === 'development' && url !== null && isPublicName(url.hostname))
    return [
      {
        code: 'base_url_public',
        detail: 'BASE_URL is a public address while APP_ENV is development, its default.',
        remedy:
          'Set APP_ENV=production (or certification), or a BASE_URL of this machine such as http://localhost:3000.',
      },
    ]
  return []
}

/** Suffixes without public DNS: RFC 6761, RFC 6762, RFC 8375, and `internal`, which ICANN has reserved. */
const PRIVATE_NAMES = /(?:^|\.)(?:localhost|test|local|internal|home\.arpa)\.?$/

/** Whether a host can be reached from outside: not loopback, no private address, no name of a private network. */
function isPublicName(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, '')
  if (/^[\d.]+$/.test(address) || address.includes(':')) return classifyAddress(address) === 'public'
  return address.includes('.') && !PRIVATE_NAMES.test(address)
}

function judgeStrength({ appEnv, secrets, metricsToken }: JudgedSettings): RefusedSetting[] {
  if (appEnv !== 'production' && appEnv !== 'certification') return []
  const token = metricsToken !== undefined && isGuessableToken(metricsToken) ? ['METRICS_TOKEN'] : []
  return [...listGuessable(secrets), ...token].map(buildGuessable)
}

/**
 * The settings that hold a secret that can be guessed. Of SECRET_KEY the first one counts: the others decrypt what a
 * rotation has not reached, so that a weak key can be replaced.
 */
export function listGuessable(secrets: Readonly<Record<string, readonly string[]>>): string[] {
  const judged = (name: string, values: readonly string[]) => (name === 'SECRET_KEY' ? values.slice(0, 1) : values)
  return Object.entries(secrets)
    .filter(([name, values]) => judged(name, values).some(isGuessableSecret))
    .map(([name]) => name)
}

/** The refusal of a guessable secret. */
export function buildGuessable(name: string): RefusedSetting {
  return {
    code: 'secret_guessable',
    detail: `${name} holds a secret that can be guessed: it repeats itself, follows a sequence or has few different characters.`,
    remedy: 'Replace it by a random one: openssl rand -base64 32',
  }
}

/** The sentence of a start that is refused. */
export function describeRefused({ detail, remedy }: RefusedSetting): string {
  return `${detail} ${remedy}`
}

const SENTENCES: readonly (readonly [RegExp, FindingCode])[] = [
  [/^APP_ENV is development, its default, while NODE_ENV/, 'environment_contradicts'],
  [/^BASE_URL is not (?:set|an https URL) in production/, 'base_url_missing'],
  [/^BASE_URL is a public address/, 'base_url_public'],
  [/^\S+ is not a setting of Signalbox/, 'setting_unknown'],
  [/^[A-Z_]+ holds a secret that can be guessed/, 'secret_guessable'],
]

/** The code of a sentence of a start that is refused. */
export function findRefusedCode(sentence: string): FindingCode {
  return SENTENCES.find(([pattern]) => pattern.test(sentence))?.[1] ?? 'setting_invalid'
}
