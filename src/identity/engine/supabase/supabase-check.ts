import type { Logger } from 'pino'
import { asFacts, type ProviderFacts } from '../embedded/provider/provider-declaration.ts'
import type { SupabaseClient } from './supabase-client.ts'
import { toEngineName } from './supabase-identity.ts'

/** Settings that the server reports. */
export interface ServerFacts {
  /** `GET /settings`. */
  settings: ProviderFacts
  /** Its public keys (RFC 7517). */
  keys: ProviderFacts
  isOAuthOn: boolean
}

/** Settings of the server that prevent sign-ins or confuse users, as sentences for the log. Pure. */
export function judgeServer({ settings, keys, isOAuthOn }: ServerFacts, providers: readonly string[]): string[] {
  const external = asFacts(settings.external)
  // A provider that the settings leave out, such as a custom one, may be on.
  const off = providers.filter((name) => external[toEngineName(name)] === false)
  const list = Array.isArray(keys.keys) ? keys.keys.map(asFacts) : []
  const findings = off.map(
    (name) => `the provider ${toEngineName(name)} is off at Supabase Auth, so no user can sign in with ${name}`,
  )
  if (settings.mailer_autoconfirm === true)
    findings.push('Supabase Auth confirms addresses by itself, and so links identities by unverified addresses')
  if (isOAuthOn && !list.some(({ crv }) => crv === 'P-256'))
    findings.push('Supabase Auth publishes no ES256 key, so that the tokens of its OAuth apps cannot be verified')
  return findings
}

/** Asks the server, and writes a warning for each finding. For the start of a process. Never rejects. */
export async function checkServer(deps: {
  client: SupabaseClient
  providers: readonly string[]
  logger: Pick<Logger, 'warn'>
}): Promise<void> {
  const { client, providers, logger } = deps
  try {
    const [settings, keys, isOAuthOn] = await Promise.all([client.readSettings(), client.readKeys(), client.hasOAuth()])
    const facts = { settings: settings.ok ? settings.data : {}, keys: asFacts(keys), isOAuthOn }
    for (const finding of judgeServer(facts, providers))
      logger.warn(`${finding}: see docs/guides/social-login.md#supabase-auth`)
  } catch (error) {
    logger.warn({ err: error }, 'Supabase Auth does not answer: see docs/guides/social-login.md#supabase-auth')
  }
}
