import type { IdMaker } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import { buildContractAccounts } from '../../contract/contract-accounts.ts'
import type { CatalogueEntry } from '../../event/catalogue/catalogue.ts'
import { buildPublicationBatch } from '../../event/recording/publication-batch.ts'
import type { Pipeline } from '../../http/pipeline/pipeline-deps.ts'
import type { AccountLimiter } from '../../identity/account/limit/account-limit.ts'
import type { Brand } from '../../identity/pages/brand/brand.ts'
import type { PasswordHashing } from '../../identity/password/password.ts'
import { readHookKeys } from '../../oauth/hook/hook-signature.ts'
import { listFigures, type ReadCellFacts } from '../../operations/health/cell-facts.ts'
import { buildHealthDeps } from '../../operations/health/health.ts'
import { buildServiceFacts, type RealtimeMode } from '../../operations/health/service-facts.ts'
import type { CallbackRules } from '../../outbound/guard/callback-url.ts'
import { buildGuardedFetch } from '../../outbound/guarded-fetch.ts'
import { EMBEDDED_CLUSTER, type ProviderApp } from '../../realtime/provider/provider-settings.ts'
import { buildRealtimeHealth } from '../../realtime/realtime-health.ts'
import type { AppOptions } from '../part/app-options.ts'
import { decideMailWay } from '../part/mail-transport.ts'
import { buildHandshakeRules } from '../secret/handshake-rules.ts'
import type { Workers } from '../work/workers.ts'
import type { FeatureParts } from './feature.ts'
import { buildIdentityParts } from './identity-engine.ts'
import { buildPageSettings } from './pages.ts'
import { listAccountPermissions, listPermissions, ROUTE_TREE } from './route-tree.ts'

/** Mode in which this process publishes realtime messages. Pure. */
function decideRealtimeMode(app: ProviderApp | undefined): RealtimeMode {
  if (!app) return 'log-only'
  return app.cluster === EMBEDDED_CLUSTER ? 'embedded' : 'provider'
}

/** Parts that the app builds before its features. */
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
  passwords: PasswordHashing
  readCellFacts: ReadCellFacts
}

/** Builds the parts from which features take their dependencies. */
export function buildFeatureParts(options: AppOptions, built: BuiltParts): FeatureParts {
  const { config, secrets, database, clock, random, logger } = options
  const { workers, authenticate, brand, baseUrl, readCellFacts, ...parts } = built
  const permissions = listPermissions(ROUTE_TREE).map(({ name }) => name)
  const accountPermissions = listAccountPermissions(ROUTE_TREE)
  const { ids, keyring, callbackRules } = built
  const identity = buildIdentityParts(options, { ids, keyring, baseUrl, callbackRules })
  const pages = { config, brand, secrets: secrets.sessionJwt, random, baseUrl, authenticate }
  return {
    ...parts,
    ...identity,
    ...{ random, baseUrl, serviceName: brand.name },
    pulls: workers.pulls,
    accountDefaults: config.accountLimits,
    lookup: options.lookup,
    resolveTxt: options.resolveTxt,
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
        else workers.relay?.notify()
      },
      onEvents: workers.realtime.noteUnpublished,
    }),
    keys: { secrets: secrets.sessionJwt, issuer: baseUrl },
    handshakes: buildHandshakeRules(options, baseUrl),
    hookKeys: readHookKeys(secrets.oauthHook),
    canSendMail: decideMailWay(config) !== 'none',
    signUp: config.signUp,
    signInByMail: config.signInByMail,
    listPermissions: () => permissions,
    listAccountPermissions: () => accountPermissions,
    realtime: {
      ...workers.realtime,
      takesTestEvents: config.realtimeTestEvents,
      findContractAccount: buildContractAccounts(clock),
      countAuthorization: workers.metrics.realtime.countAuthorization,
      countProviderEvent: workers.metrics.realtime.countProviderEvent,
    },
    countConnectionSignIn: workers.metrics.countConnectionSignIn,
    health: buildHealthDeps({
      db: database.db,
      ...{ clock, keyIds: built.keyring.keyIds, hasEventLog: config.eventLog !== undefined },
      readRealtimeHealth: buildRealtimeHealth({
        ...{ db: database.db, clock, missing: workers.realtime.missing },
        listCellWork: async () => listFigures(await readCellFacts()).figures.map(({ realtime }) => realtime),
      }),
      readCellFacts,
    }),
    readServiceFacts: buildServiceFacts(database.db, {
      ...{ environment: config.appEnv, roles: config.roles, isPublishing: config.enableApiEventQueue },
      startedAt: new Date(clock.now()),
      // The embedded server is known once the service listens.
      findRealtime: () => decideRealtimeMode(workers.realtime.findApp()),
    }),
    pages: buildPageSettings({ ...pages, engine: identity.engine }),
  }
}
