import type { AccountLimiter } from '../account/account-limit.ts'
import type { CatalogueEntry } from '../catalogue/catalogue.ts'
import { buildHealthDeps } from '../health/health.ts'
import type { Pipeline } from '../http/pipeline-deps.ts'
import type { IdMaker } from '../id.ts'
import type { Keyring } from '../keyring.ts'
import { readHookKeys } from '../oauth/hook-signature.ts'
import type { CallbackRules } from '../outbound/callback-url.ts'
import { buildGuardedFetch } from '../outbound/guarded-fetch.ts'
import type { Brand } from '../pages/brand.ts'
import { buildContractAccounts } from '../realtime/contract-accounts.ts'
import { buildRealtimeHealth } from '../realtime/realtime-health.ts'
import { buildPasswordHashing } from '../sign-in/password.ts'
import type { AppOptions } from './app.ts'
import type { FeatureParts } from './features.ts'
import { buildHandshakeRules } from './handshake-rules.ts'
import { buildIdentityParts } from './identity-engine.ts'
import { decideMailWay } from './mail-transport.ts'
import { buildPageSettings } from './pages.ts'
import { buildPublicationBatch } from './publication-batch.ts'
import { listAccountPermissions, listPermissions, ROUTE_TREE } from './route-tree.ts'
import type { Workers } from './workers.ts'

/** What the app has built before its features. */
export interface BuiltParts {
  ids: IdMaker
  keyring: Keyring
  catalogue: readonly CatalogueEntry[]
  callbackRules: CallbackRules
  workerId: string
  brand: Brand
  baseUrl: () => string
  workers: Workers
  accountLimits: AccountLimiter
  authenticate: Pipeline['authenticate']
}

/** Builds the parts that features take their dependencies from. */
export function buildFeatureParts(options: AppOptions, built: BuiltParts): FeatureParts {
  const { config, secrets, database, clock, random, logger } = options
  const { workers, authenticate, brand, baseUrl, ...parts } = built
  const permissions = listPermissions(ROUTE_TREE).map(({ name }) => name)
  const accountPermissions = listAccountPermissions(ROUTE_TREE)
  const identity = buildIdentityParts(options, { ids: built.ids, keyring: built.keyring, baseUrl })
  const pages = { config, brand, secrets: secrets.sessionJwt, random, baseUrl, authenticate }
  return {
    ...parts,
    ...identity,
    random,
    passwords: buildPasswordHashing(config.passwordHashCost, random),
    accountDefaults: config.accountLimits,
    lookup: options.lookup,
    fetch: buildGuardedFetch({
      lookup: options.lookup,
      rules: built.callbackRules,
      ...(options.ca !== undefined && { ca: options.ca }),
    }),
    enableApiEventQueue: config.enableApiEventQueue,
    publications: buildPublicationBatch({
      logger,
      db: database.db,
      workerDb: (options.workerDatabase ?? database).db,
      takeInline: () => workers.router.takeInline(),
      onRecorded: (isQueued) => {
        options.onCrashPoint?.('after-change')
        if (isQueued) workers.notify()
      },
      onEvents: workers.realtime.noteUnpublished,
    }),
    keys: { secrets: secrets.sessionJwt, issuer: baseUrl },
    handshakes: buildHandshakeRules(options, baseUrl),
    hookKeys: readHookKeys(secrets.oauthHook),
    canSendMail: decideMailWay(config) !== 'none',
    listPermissions: () => permissions,
    listAccountPermissions: () => accountPermissions,
    realtime: {
      ...workers.realtime,
      findContractAccount: buildContractAccounts(clock),
      countAuthorization: workers.metrics.realtime.countAuthorization,
      countProviderEvent: workers.metrics.realtime.countProviderEvent,
    },
    health: buildHealthDeps({
      db: database.db,
      ...{ clock, keyIds: built.keyring.keyIds },
      readRealtimeHealth: buildRealtimeHealth({ db: database.db, clock, missing: workers.realtime.missing }),
    }),
    pages: buildPageSettings({ ...pages, engine: identity.engine }),
  }
}
