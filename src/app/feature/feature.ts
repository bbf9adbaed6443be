import type { FastifyInstance } from 'fastify'
import type { IdMaker } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { Random } from '../../base/random.ts'
import type { CatalogueEntry } from '../../event/catalogue/catalogue.ts'
import type { PublicationBatch } from '../../event/recording/publication-batch.ts'
import { type MountedFeature, mountRoutes } from '../../http/pipeline/pipeline.ts'
import type { Pipeline } from '../../http/pipeline/pipeline-deps.ts'
import type { RouteDeclaration, Routes } from '../../http/route/route.ts'
import type { AccountLimits } from '../../identity/account/limit/account-limit.store.ts'
import type { AccountLimiter } from '../../identity/account/limit/account-limit.ts'
import type { ConnectionEngines } from '../../identity/connection/connection-engines.ts'
import type { DevProvider } from '../../identity/engine/embedded/dev-provider.ts'
import type { Engine } from '../../identity/engine/engine.ts'
import type { FlowCookies } from '../../identity/pages/browser/flow-cookie.ts'
import type { SignInPageDeps } from '../../identity/pages/sign-in/sign-in-goal.ts'
import type { PasswordHashing } from '../../identity/password/password.ts'
import type { SessionKeys } from '../../identity/session/token/session-token.ts'
import type { SignUpRules } from '../../identity/sign-up/sign-up.ts'
import type { ConnectionCounter } from '../../identity/social-login/connection-count.ts'
import type { HandshakeRules } from '../../identity/sso/handshake-token.ts'
import type { EngineConsent } from '../../oauth/engine-consent/engine-consent.ts'
import type { TokenIssuer } from '../../oauth/exchange/token-issuer.ts'
import type { HookKeys } from '../../oauth/hook/hook-signature.ts'
import type { HealthDeps } from '../../operations/health/health.ts'
import type { ServiceFacts } from '../../operations/health/service-facts.ts'
import type { CallbackRules } from '../../outbound/guard/callback-url.ts'
import type { Lookup } from '../../outbound/guard/dns.ts'
import type { ResolveTxt } from '../../outbound/guard/dns-text.ts'
import type { GuardedFetch } from '../../outbound/guarded-fetch.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { RealtimeDeps } from '../../realtime/realtime.routes.ts'
import type { TestEventDeps } from '../../realtime/test-event.routes.ts'
import type { PullDeps } from '../../webhook/pull/pull.ts'

/** The parts that features are built from, created once by the app. */
export interface FeatureParts {
  ids: IdMaker
  baseUrl: () => string
  /** BRAND_NAME, for mails and authenticator apps. */
  serviceName: string
  random: Random
  keyring: Keyring
  passwords: PasswordHashing
  catalogue: readonly CatalogueEntry[]
  accountLimits: AccountLimiter
  accountDefaults: AccountLimits
  callbackRules: CallbackRules
  lookup: Lookup
  resolveTxt: ResolveTxt
  /** For URLs given by users and clients. */
  fetch: GuardedFetch
  workerId: string
  pulls: PullDeps
  enableApiEventQueue: boolean
  /** Where memberships are, for requests in a cell; undefined for those in home. */
  homeDb?: Database
  /** Records publications, those of concurrent requests in one statement. */
  publications: PublicationBatch
  keys: SessionKeys
  handshakes: HandshakeRules
  canSendMail: boolean
  signUp: SignUpRules
  signInByMail: boolean
  listPermissions: () => readonly string[]
  /** Permissions with an effect when limited to some accounts. */
  listAccountPermissions: () => readonly string[]
  health: HealthDeps
  readServiceFacts: () => Promise<ServiceFacts>
  realtime: RealtimeDeps & TestEventDeps
  countConnectionSignIn: ConnectionCounter['countConnectionSignIn']
  engine: Engine
  connections: ConnectionEngines
  engineConsent?: EngineConsent
  /** Looks for faults in the settings of a managed engine, for the log. Never rejects. */
  checkEngine?: () => Promise<void>
  /** `OAUTH_HOOK_SECRET`. */
  hookKeys: HookKeys
  tokenIssuers: readonly TokenIssuer[]
  /** Bind authorizations and sign-ins with a provider to the browsers in which they begin. */
  flowCookies: FlowCookies
  /** The provider of sample users; in development. */
  devProvider?: DevProvider
  pages: PageSettings
}

/** A feature: its routes, and the function that mounts them with their dependencies. */
export interface Feature {
  routes: readonly RouteDeclaration[]
  mount(server: FastifyInstance, pipeline: Pipeline, parts: FeatureParts): void
}

/** The members of `Deps` that no part has under their name. */
type Lacking<Deps> = {
  [Name in keyof Deps as FeatureParts extends Pick<Deps, Name> ? never : Name]: Deps[Name]
}

type Perform<Deps> = MountedFeature<Deps>['perform']
type Build<Deps> = (parts: FeatureParts) => Lacking<Deps> & Partial<Deps>

/**
 * Declares a feature. Its dependencies are the parts of their names, and what `build` adds; `perform` is its own path from a
 * checked request to the answer.
 */
export function feature<Deps>(
  routes: Routes<Deps>,
  ...[build, perform]: keyof Lacking<Deps> extends never
    ? [build?: Build<Deps>, perform?: Perform<Deps>]
    : [build: Build<Deps>, perform?: Perform<Deps>]
): Feature {
  const complete = (parts: FeatureParts) => ({ ...parts, ...build?.(parts) }) as Deps
  return {
    routes,
    mount: (server, pipeline, parts) => {
      const built = new WeakMap<object, Deps>()
      const depsIn = (own: object) => {
        const deps = built.get(own) ?? complete({ ...parts, ...own })
        built.set(own, deps)
        return deps
      }
      mountRoutes(server, pipeline, { routes, deps: complete(parts), depsIn, ...(perform && { perform }) })
    },
  }
}

/** Parts of pages besides those of every feature. */
export type PageSettings = Omit<
  SignInPageDeps,
  | 'ids'
  | 'random'
  | 'keys'
  | 'keyring'
  | 'serviceName'
  | 'canSendMail'
  | 'openTarget'
  | 'needsHandshake'
  | 'findApp'
  | 'canSignUp'
  | 'canSignInByMail'
>
