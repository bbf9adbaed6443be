import { buildHealthDeps } from '../health/health.ts'
import type { AppOptions } from './app.ts'
import type { FeatureParts } from './features.ts'
import { buildIdentityParts } from './identity-engine.ts'
import { buildPageSettings, type PageSettings } from './pages.ts'
import { buildPublicationBatch } from './publication-batch.ts'
import { listPermissions, ROUTE_TREE } from './route-tree.ts'

/** Builds the parts that features select their dependencies from. */
export function buildFeatureParts(
  options: AppOptions,
  built: Pick<FeatureParts, 'ids' | 'keyring' | 'catalogue' | 'callbackRules' | 'workerId'> &
    Pick<PageSettings, 'brand' | 'baseUrl' | 'authenticate'>,
): FeatureParts {
  const { config, secrets, database, clock, random, lookup } = options
  const { brand, baseUrl, authenticate, ...rest } = built
  const permissions = listPermissions(ROUTE_TREE).map(({ name }) => name)
  const identity = buildIdentityParts(options, { keyring: built.keyring, baseUrl })
  const pages = { config, brand, secrets: secrets.sessionJwt, random, baseUrl, authenticate }
  return {
    ...rest,
    ...identity,
    random,
    lookup,
    enableApiEventQueue: config.enableApiEventQueue,
    publications: buildPublicationBatch(database.db),
    keys: { secrets: secrets.sessionJwt, issuer: baseUrl },
    listPermissions: () => permissions,
    health: buildHealthDeps(database.db, clock),
    pages: buildPageSettings({ ...pages, engine: identity.engine }),
  }
}
