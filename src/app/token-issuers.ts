import type { SupabaseClient } from '../engine/supabase/supabase-client.ts'
import { buildIssuerKeys } from '../oauth/issuer-keys.ts'
import { buildSupabaseIssuer } from '../oauth/supabase-issuer.ts'
import { buildOwnIssuer, type TokenIssuer } from '../oauth/token-issuer.ts'
import type { AppOptions } from './app.ts'

/** The issuers whose access tokens are exchanged: the managed engine, or else the own provider. */
export function buildTokenIssuers(
  { config, clock, logger, loadProviderKeys: load }: AppOptions,
  { baseUrl, managed }: { baseUrl: () => string; managed: SupabaseClient | undefined },
): TokenIssuer[] {
  if (managed) {
    const keys = buildIssuerKeys({ load: managed.readKeys, clock, logger })
    return [buildSupabaseIssuer({ client: managed, issuer: config.supabaseIssuer ?? '', baseUrl, keys })]
  }
  return load ? [buildOwnIssuer({ baseUrl, keys: buildIssuerKeys({ load, clock, logger }), isKept: false })] : []
}
