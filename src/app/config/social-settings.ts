import {
  enableProvider,
  type ProviderSettings,
  sortProviders,
} from '../../identity/engine/embedded/built-in-providers.ts'
import type { EnabledProvider } from '../../identity/engine/embedded/provider/provider-declaration.ts'
import type { AppEnv } from './config-variables.ts'

/** A setting of one provider: `SOCIAL_<PROVIDER>_<SETTING>`. */
interface SocialVariable {
  meaning: string
  fallback: string
  secret?: boolean
}

/** The settings of social login, by the end of their names. The docs are generated from this table. */
export const SOCIAL_VARIABLES: Readonly<Record<string, SocialVariable>> = {
  'SOCIAL_<PROVIDER>_CLIENT_ID': {
    fallback: 'none: the provider is off',
    meaning:
      'Enables a provider: GOOGLE, APPLE, MICROSOFT, GITHUB, FACEBOOK, LINKEDIN, GITLAB, DISCORD, or any name with an issuer.',
  },
  'SOCIAL_<PROVIDER>_CLIENT_SECRET': {
    fallback: 'none',
    meaning: 'Its client secret. For Apple the private key (.p8) in PEM, line breaks as \\n.',
    secret: true,
  },
  'SOCIAL_<PROVIDER>_ISSUER': {
    fallback: 'that of the built-in provider',
    meaning:
      'The issuer of a generic OpenID provider; for a built-in one the address of an own installation, or one Microsoft tenant. HTTPS outside development.',
  },
  'SOCIAL_<PROVIDER>_TEAM_ID': { fallback: 'none', meaning: 'Apple: the team that registered the client.' },
  'SOCIAL_<PROVIDER>_KEY_ID': { fallback: 'none', meaning: 'Apple: the id of the private key.' },
  'SOCIAL_<PROVIDER>_TRUST_EMAIL': {
    fallback: 'true',
    meaning: 'Whether an e-mail address that the provider has verified counts as verified here.',
  },
}

const NAME_PATTERN = /^SOCIAL_([A-Z][A-Z0-9_]{0,30})_(CLIENT_ID|CLIENT_SECRET|ISSUER|TEAM_ID|KEY_ID|TRUST_EMAIL)$/

/** Whether a variable is a setting of a social provider. */
export function isSocialSetting(name: string): boolean {
  return NAME_PATTERN.test(name)
}

/** Reads the `SOCIAL_*` variables (docs/contract/social-login.md#providers). `isManaged`: the engine keeps secrets. */
export function readSocialSettings(
  env: Readonly<Record<string, string | undefined>>,
  { appEnv, isManaged = false }: { appEnv: AppEnv; isManaged?: boolean },
): { providers: EnabledProvider[]; faults: string[] } {
  const faults: string[] = []
  const given = new Map<string, Map<string, string>>()
  for (const [variable, text] of Object.entries(env)) {
    if (!variable.startsWith('SOCIAL_') || text === undefined || text === '') continue
    const [, provider, setting] = NAME_PATTERN.exec(variable) ?? []
    if (provider === undefined || setting === undefined) continue
    given.set(provider, (given.get(provider) ?? new Map()).set(setting, text))
  }
  const isHttpAllowed = appEnv === 'development' || appEnv === 'test'
  const providers: EnabledProvider[] = []
  for (const [provider, settings] of given) {
    const read = readProvider(provider, settings, isHttpAllowed)
    const result = 'fault' in read ? read : enableProvider(read, isManaged)
    if ('fault' in result) faults.push(`SOCIAL_${provider}_${result.setting} ${result.fault}.`)
    else providers.push(result.provider)
  }
  return { providers: sortProviders(providers), faults }
}

function readProvider(
  provider: string,
  settings: ReadonlyMap<string, string>,
  isHttpAllowed: boolean,
): ProviderSettings | { setting: string; fault: string } {
  const trust = settings.get('TRUST_EMAIL')
  if (trust !== undefined && trust !== 'true' && trust !== 'false')
    return { setting: 'TRUST_EMAIL', fault: 'must be true or false' }
  const issuer = settings.get('ISSUER')
  const issuerFault = issuer === undefined ? undefined : findIssuerFault(issuer, isHttpAllowed)
  if (issuerFault) return { setting: 'ISSUER', fault: issuerFault }
  return {
    name: provider.toLowerCase().replaceAll('_', '-'),
    clientId: settings.get('CLIENT_ID'),
    clientSecret: settings.get('CLIENT_SECRET'),
    // An issuer is compared as text; only a lone root slash is not part of it.
    issuer: issuer?.replace(/^(https?:\/\/[^/]+)\/$/, '$1'),
    teamId: settings.get('TEAM_ID'),
    keyId: settings.get('KEY_ID'),
    isEmailTrusted: trust === undefined ? undefined : trust === 'true',
  }
}

function findIssuerFault(issuer: string, isHttpAllowed: boolean): string | undefined {
  const url = URL.parse(issuer)
  if (!url || !['https:', 'http:'].includes(url.protocol)) return 'must be an https URL'
  if (url.protocol === 'http:' && !isHttpAllowed) return 'must be an https URL outside development'
  if (url.search || url.hash || url.username || url.password) return 'must have no query, fragment or user'
  return undefined
}
