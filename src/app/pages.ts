import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { mountRoutes } from '../http/pipeline.ts'
import type { Pipeline } from '../http/pipeline-deps.ts'
import type { Routes } from '../http/route.ts'
import { accountPageRoutes } from '../pages/account.routes.ts'
import type { Brand } from '../pages/brand.ts'
import { buildBrowserCookies } from '../pages/browser-cookie.ts'
import { buildBrowserKeys } from '../pages/browser-key.ts'
import { type BrowserSessionDeps, browserSessionRoutes } from '../pages/browser-session.routes.ts'
import { deviceRoutes } from '../pages/device.routes.ts'
import { ICON, STYLE } from '../pages/page.ts'
import { mountPageFiles, type PageFile } from '../pages/page-file.ts'
import { SHOW_PASSWORD } from '../pages/password-script.ts'
import { type SignInPageDeps, signInPageRoutes } from '../pages/sign-in.routes.ts'
import type { Config } from './config.ts'
import type { FeatureParts } from './features.ts'

/** Dependencies of all pages. */
type PagesDeps = SignInPageDeps & BrowserSessionDeps

/**
 * The pages for people, outside the v3 tree: they are in no document and no catalogue, and their events are those of the
 * API routes with the same names.
 */
export const PAGE_ROUTES: Routes<PagesDeps> = [
  ...signInPageRoutes,
  ...browserSessionRoutes,
  ...deviceRoutes,
  ...accountPageRoutes,
]

/** The constant files of all pages. A feature with a script of its own adds it here. */
const PAGE_FILES: readonly PageFile[] = [STYLE, ICON, SHOW_PASSWORD]

/** Mounts the pages and their files. */
export function mountPages(
  server: FastifyInstance,
  pipeline: Pipeline,
  app: {
    parts: Pick<FeatureParts, 'ids' | 'random' | 'keys' | 'keyring'>
    config: Config
    brand: Brand
    /** Counts a request for a file against its address; throws `rate_limited`. */
    limit: (request: FastifyRequest, reply: FastifyReply) => void
  },
): void {
  const { parts, config, brand, limit } = app
  const { ids, random, keys, keyring } = parts
  const { appEnv, redirectAllowList: allowList } = config
  mountRoutes(server, pipeline, PAGE_ROUTES, {
    ids,
    random,
    keys,
    keyring,
    brand,
    baseUrl: keys.issuer,
    authenticate: pipeline.authenticate,
    cookies: buildBrowserCookies(decideCookies(config)),
    browserKeys: buildBrowserKeys({ secrets: keys.secrets, random }),
    redirectRules: { allowList, allowLoopback: appEnv === 'development' },
    listProviders: () => [],
  })
  mountPageFiles(server, brand.logo ? [...PAGE_FILES, brand.logo] : PAGE_FILES, limit)
}

/** Development has no TLS, unless BASE_URL says so; a cookie of production belongs to its host. */
function decideCookies({ appEnv, baseUrl, sessionCookieDomain: domain }: Config) {
  const isSecure = appEnv !== 'development' || baseUrl?.startsWith('https:') === true
  return { isSecure, isHostBound: appEnv === 'production', domain }
}
