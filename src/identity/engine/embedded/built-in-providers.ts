import { apple, readAppleKey } from './provider/apple.ts'
import { discord } from './provider/discord.ts'
import { facebook } from './provider/facebook.ts'
import { declareOpenId } from './provider/generic-openid.ts'
import { github } from './provider/github.ts'
import { gitlab } from './provider/gitlab.ts'
import { google } from './provider/google.ts'
import { linkedin } from './provider/linkedin.ts'
import { microsoft } from './provider/microsoft.ts'
import type { EnabledProvider, ProviderDeclaration } from './provider/provider-declaration.ts'

/** The providers with a declaration of their own, in the order in which users see them. */
const BUILT_IN: Readonly<Record<string, ProviderDeclaration>> = {
  google,
  apple,
  microsoft,
  github,
  facebook,
  linkedin,
  gitlab,
  discord,
}

/** Reserved names in the same position of a path or a setting. */
const RESERVED = ['local', 'dev']

/** The settings of one provider: `SOCIAL_<PROVIDER>_...`, as the configuration reads them. */
export interface ProviderSettings {
  /** The name in the path: lower case, hyphens. */
  name: string
  clientId: string | undefined
  clientSecret: string | undefined
  issuer: string | undefined
  teamId: string | undefined
  keyId: string | undefined
  isEmailTrusted: boolean | undefined
}

/** A provider, or the setting that keeps it from being enabled, with the rule. */
export type EnabledOrFault = { provider: EnabledProvider } | { setting: string; fault: string }

/** Enables a provider (docs/contract/social-login.md#providers); a managed engine needs the client id alone. Pure. */
export function enableProvider(settings: ProviderSettings, isManaged = false): EnabledOrFault {
  const { name, clientId, clientSecret, issuer, teamId, keyId, isEmailTrusted = true } = settings
  const builtIn = Object.hasOwn(BUILT_IN, name) ? BUILT_IN[name] : undefined
  if (RESERVED.includes(name))
    return { setting: 'CLIENT_ID', fault: `names ${name}, which is not a provider with settings` }
  if (clientId === undefined)
    return { setting: 'CLIENT_ID', fault: 'is required by the other settings of this provider' }
  if (!builtIn && issuer === undefined && !isManaged)
    return { setting: 'ISSUER', fault: `is required: ${name} is not a built-in provider` }
  const declaration = builtIn ?? declareOpenId(toLabel(name), issuer ?? '')
  const given = { secret: clientSecret, teamId, keyId }
  const missing = isManaged ? undefined : declaration.needs.find((need) => given[need] === undefined)
  if (missing) return { setting: SETTING_OF[missing], fault: `is required for ${declaration.label}` }
  if (name === 'apple' && !isManaged && !isAppleKey(clientSecret))
    return { setting: 'CLIENT_SECRET', fault: 'must be the private key of Apple (.p8, on the curve P-256) in PEM' }
  return {
    provider: {
      name,
      declaration,
      client: { id: clientId, secret: clientSecret, teamId, keyId },
      ...(issuer !== undefined && { base: () => issuer }),
      isEmailTrusted,
    },
  }
}

const SETTING_OF = { secret: 'CLIENT_SECRET', teamId: 'TEAM_ID', keyId: 'KEY_ID' } as const

/** The built-in providers, in the order in which users see them, each with the settings that enable it. */
export function listBuiltInProviders(): { name: string; label: string; settings: string[] }[] {
  return Object.entries(BUILT_IN).map(([name, { label, needs }]) => ({
    name,
    label,
    settings: ['CLIENT_ID', ...needs.map((need) => SETTING_OF[need])].map(
      (end) => `SOCIAL_${name.toUpperCase()}_${end}`,
    ),
  }))
}

/** In the order of users's choice: the built-in ones first, then the others by name. */
export function sortProviders(providers: readonly EnabledProvider[]): EnabledProvider[] {
  const order = Object.keys(BUILT_IN)
  const rank = ({ name }: EnabledProvider) => (order.includes(name) ? order.indexOf(name) : order.length)
  return providers.toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1))
}

function isAppleKey(text: string | undefined): boolean {
  try {
    readAppleKey(text)
    return true
  } catch {
    return false
  }
}

/** `my-company` as `My company`. */
function toLabel(name: string): string {
  const words = name.replaceAll('-', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
