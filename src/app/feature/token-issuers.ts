import { systemClock } from '../../base/clock.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { SupabaseClient } from '../../identity/engine/supabase/supabase-client.ts'
import { buildSupabaseIssuer } from '../../oauth/engine-consent/supabase-issuer.ts'
import { buildOwnIssuer, type TokenIssuer } from '../../oauth/exchange/token-issuer.ts'
import { KEYS_CACHE_MS } from '../../oauth/provider/provider-source.ts'
import { buildIssuerKeys } from '../../oauth/signing-key/issuer-keys.ts'
import { loadSigningKeys } from '../../oauth/signing-key/signing-key.ts'
import type { AppOptions } from '../part/app-options.ts'

/** The own keys are read from the database, so that a key which is withdrawn at once is not accepted for long. */
const OWN_KEYS = { freshMs: KEYS_CACHE_MS / 2, keptMs: KEYS_CACHE_MS, pauseMs: 1_000 }

/** The issuers whose access tokens are exchanged: the managed engine, or else the own provider. */
export function buildTokenIssuers(
  { config, clock, logger, database, loadProviderKeys }: AppOptions,
  parts: { baseUrl: () => string; keyring: Keyring; managed: SupabaseClient | undefined },
): TokenIssuer[] {
  const { baseUrl, keyring, managed } = parts
  if (managed) {
    const keys = buildIssuerKeys({ load: managed.readKeys, clock, logger })
    return [buildSupabaseIssuer({ client: managed, issuer: config.supabaseIssuer ?? '', baseUrl, keys })]
  }
  if (loadProviderKeys)
    return [
      buildOwnIssuer({ baseUrl, keys: buildIssuerKeys({ load: loadProviderKeys, clock, logger }), isKept: false }),
    ]
  // Keys follow the clock of the machine, like the provider.
  const load = async () => ({ keys: await loadSigningKeys(keyring, database.db, new Date(systemClock.now())) })
  const keys = buildIssuerKeys({ load, clock, logger, times: OWN_KEYS })
  return [buildOwnIssuer({ baseUrl, keys, isKept: true })]
}
