import type { FastifyInstance } from 'fastify'
import { apiKeyRoutes } from '../access/api-key.routes.ts'
import { roleRoutes } from '../access/role.routes.ts'
import { accountRoutes } from '../account/account.routes.ts'
import { checkAccountExists } from '../account/account.ts'
import { accountLimitRoutes } from '../account/account-limit.routes.ts'
import type { AccountLimiter, AccountLimits } from '../account/account-limit.ts'
import { accountMemberRoutes } from '../account/account-member.routes.ts'
import { invitationRoutes } from '../account/invitation.routes.ts'
import { auditRoutes } from '../audit/audit.routes.ts'
import type { AuditRecord } from '../audit/audit.store.ts'
import { catalogueRoutes } from '../catalogue/catalogue.routes.ts'
import type { CatalogueEntry } from '../catalogue/catalogue.ts'
import { contractRoutes } from '../contract/contract.routes.ts'
import { dashboardRoutes } from '../dashboard/dashboard.routes.ts'
import type { DevProvider } from '../engine/embedded/dev-provider.ts'
import type { Engine } from '../engine/engine.ts'
import { eventRoutes } from '../event/event.routes.ts'
import { healthRoutes } from '../health/health.routes.ts'
import type { HealthDeps } from '../health/health.ts'
import { mountRoutes } from '../http/pipeline.ts'
import type { Pipeline } from '../http/pipeline-deps.ts'
import type { RouteDeclaration, Routes } from '../http/route.ts'
import type { IdMaker } from '../id.ts'
import type { Keyring } from '../keyring.ts'
import { clientRoutes } from '../oauth/client.routes.ts'
import { decisionRoutes } from '../oauth/decision.routes.ts'
import type { EngineConsent } from '../oauth/engine-consent.ts'
import { exchangeRoutes } from '../oauth/exchange.routes.ts'
import { grantRoutes } from '../oauth/grant.routes.ts'
import type { HookKeys } from '../oauth/hook-signature.ts'
import { findApiResource } from '../oauth/provider/provider-source.ts'
import { tokenHookRoutes } from '../oauth/token-hook.routes.ts'
import type { TokenIssuer } from '../oauth/token-issuer.ts'
import type { CallbackRules } from '../outbound/callback-url.ts'
import type { Lookup } from '../outbound/dns.ts'
import type { GuardedFetch } from '../outbound/guarded-fetch.ts'
import { signInBrowser } from '../pages/browser-session.ts'
import { jobRoutes } from '../provisioning/job/job.routes.ts'
import { deliveryRoutes } from '../provisioning/ledger/delivery.routes.ts'
import { targetRoutes } from '../provisioning/target.routes.ts'
import type { Random } from '../random.ts'
import { type RealtimeDeps, realtimeRoutes } from '../realtime/realtime.routes.ts'
import { sessionRoutes } from '../session/session.routes.ts'
import { sessionListRoutes } from '../session/session-list.routes.ts'
import type { SessionKeys } from '../session/session-token.ts'
import { factorLoginRoutes } from '../sign-in/factor-login.routes.ts'
import { factorRemovalRoutes } from '../sign-in/factor-removal.routes.ts'
import { loginRoutes } from '../sign-in/login.routes.ts'
import { passkeyRoutes } from '../sign-in/passkey.routes.ts'
import { passkeyLoginRoutes } from '../sign-in/passkey-login.routes.ts'
import type { PasswordHashing } from '../sign-in/password.ts'
import { secondFactorRoutes } from '../sign-in/second-factor.routes.ts'
import { stepUpRoutes } from '../sign-in/step-up.routes.ts'
import type { BrowserBinding } from '../social-login/browser-binding.ts'
import { identityRoutes } from '../social-login/identity.routes.ts'
import { type SocialLoginDeps, socialLoginRoutes } from '../social-login/social-login.routes.ts'
import { buildOpenTarget } from '../sso/handshake.ts'
import type { HandshakeRules } from '../sso/handshake-token.ts'
import { ssoRoutes } from '../sso/sso.routes.ts'
import { linkRoutes } from '../user/link.routes.ts'
import { passwordRoutes } from '../user/password.routes.ts'
import { userRoutes } from '../user/user.routes.ts'
import { exportRoutes } from '../webhook/export.routes.ts'
import { dispatchRoutes } from '../webhook/ledger/dispatch.routes.ts'
import { deleteLedger } from '../webhook/ledger/dispatch.ts'
import { cancelWaitingDispatches } from '../webhook/ledger/removal.store.ts'
import { replayJobRoutes } from '../webhook/replay/replay-job.routes.ts'
import { routingExplanationRoutes } from '../webhook/routing-explanation.routes.ts'
import { subscriptionRoutes } from '../webhook/subscription.routes.ts'
import { webhookRoutes } from '../webhook/webhook.routes.ts'
import { deactivateWebhooksOf, type WebhookDeps } from '../webhook/webhook.ts'
import type { PageSettings } from './pages.ts'
import type { PublicationBatch } from './publication-batch.ts'

/** The parts that features are built from, created once by the app. */
export interface FeatureParts {
  ids: IdMaker
  random: Random
  keyring: Keyring
  /** Hashes passwords at the configured cost. */
  passwords: PasswordHashing
  catalogue: readonly CatalogueEntry[]
  /** The limits of accounts, and those of an account without its own. */
  accountLimits: AccountLimiter
  accountDefaults: AccountLimits
  callbackRules: CallbackRules
  lookup: Lookup
  /** For addresses that people and clients name. */
  fetch: GuardedFetch
  workerId: string
  enableApiEventQueue: boolean
  /** Records publications, those of concurrent requests in one statement. */
  publications: PublicationBatch
  /** Dependencies of signing and verifying session JWTs. */
  keys: SessionKeys
  /** The settings of handshakes. */
  handshakes: HandshakeRules
  /** Whether mails can be sent. */
  canSendMail: boolean
  /** The permissions of all routes. */
  listPermissions: () => readonly string[]
  /** Those that can have an effect for some accounts only. */
  listAccountPermissions: () => readonly string[]
  health: HealthDeps
  realtime: RealtimeDeps
  /** The OIDC engine. */
  engine: Engine
  /** Decides what apps ask at a managed engine. */
  engineConsent?: EngineConsent
  /** Looks for faults in the settings of a managed engine, for the log. Never rejects. */
  checkEngine?: () => Promise<void>
  /** `OAUTH_HOOK_SECRET`. */
  hookKeys: HookKeys
  /** The issuers whose access tokens are exchanged. */
  tokenIssuers: readonly TokenIssuer[]
  /** Ties a sign-in with a provider to the browser that begins it. */
  binding: BrowserBinding
  /** The provider of sample people; in development. */
  devProvider?: DevProvider
  pages: PageSettings
}

/** A feature: its routes, and the function that mounts them with their dependencies. */
export interface Feature {
  routes: readonly RouteDeclaration[]
  mount(server: FastifyInstance, pipeline: Pipeline, parts: FeatureParts): void
}

/** Declares a feature: `build` selects the dependencies of its operations from the parts. */
export function feature<Deps>(routes: Routes<Deps>, build: (parts: FeatureParts) => Deps): Feature {
  return {
    routes,
    mount: (server, pipeline, parts) => mountRoutes(server, pipeline, routes, build(parts)),
  }
}

const nothing = () => ({})
type SessionParts = Pick<FeatureParts, 'ids' | 'random' | 'keys' | 'keyring'>

const sessionDeps = ({ ids, random, keys, keyring }: SessionParts) => ({ ids, random, keys, keyring })
const factorDeps = (parts: FeatureParts) => ({ ...sessionDeps(parts), serviceName: parts.pages.brand.name })
const linkDeps = ({ ids, random, keyring, passwords, canSendMail, keys, pages }: FeatureParts) => ({
  ids,
  random,
  keyring,
  passwords,
  canSendMail,
  baseUrl: keys.issuer,
  serviceName: pages.brand.name,
})
const roleDeps = ({ ids, listPermissions, listAccountPermissions }: FeatureParts) => ({
  ids,
  listPermissions,
  listAccountPermissions,
})
/** Dependencies of what is posted to: its URL is checked, its secret is encrypted. */
const receiverDeps = ({ ids, random, keyring, callbackRules, lookup }: FeatureParts) => ({
  ids,
  random,
  keyring,
  callbackRules,
  lookup,
})
const webhookDeps = (parts: FeatureParts): WebhookDeps => ({
  ...receiverDeps(parts),
  accountLimits: parts.accountLimits,
  checkAccountExists,
  deleteLedger,
  cancelWaitingDispatches: (db, webhook, now) =>
    cancelWaitingDispatches(db, { webhook, workerId: parts.workerId, now }),
})
/** Dependencies of what records events or enqueues deliveries. */
const queueDeps = ({ ids, enableApiEventQueue }: FeatureParts) => ({ ids, enableApiEventQueue })

/** Dependencies of decisions about what apps may do. */
export const consentDeps = ({ ids, random, pages }: FeatureParts) => ({
  ids,
  random,
  apiResource: () => findApiResource(pages.baseUrl()),
})

const socialLoginDeps = ({ pages, handshakes, engine, binding, ...parts }: FeatureParts): SocialLoginDeps => ({
  ...sessionDeps(parts),
  engine,
  binding,
  enableApiEventQueue: parts.enableApiEventQueue,
  brand: pages.brand,
  baseUrl: pages.baseUrl,
  redirectRules: pages.redirectRules,
  keepInBrowser: (tokens) => signInBrowser({ ...pages, random: parts.random }, tokens),
  openTarget: buildOpenTarget({ rules: handshakes, random: parts.random }),
})

/**
 * All features with routes. The catalogue, the permissions, the OpenAPI document and the audit log follow from this list.
 * The sink is not in it, because only some environments have it.
 */
export const FEATURES: readonly Feature[] = [
  feature(loginRoutes, (parts) => ({ ...sessionDeps(parts), passwords: parts.passwords })),
  feature(factorLoginRoutes, factorDeps),
  feature(secondFactorRoutes, factorDeps),
  feature(stepUpRoutes, factorDeps),
  feature(passkeyRoutes, factorDeps),
  feature(passkeyLoginRoutes, factorDeps),
  feature(factorRemovalRoutes, nothing),
  feature(socialLoginRoutes, socialLoginDeps),
  feature(identityRoutes, socialLoginDeps),
  feature(sessionRoutes, sessionDeps),
  feature(sessionListRoutes, nothing),
  feature(ssoRoutes, (parts) => ({ ...sessionDeps(parts), rules: parts.handshakes })),
  feature(tokenHookRoutes, ({ hookKeys, keys }) => ({ hookKeys, baseUrl: keys.issuer })),
  feature(exchangeRoutes, (parts) => ({ ...sessionDeps(parts), tokenIssuers: parts.tokenIssuers })),
  feature(clientRoutes, ({ ids, random, fetch }) => ({ ids, random, fetch })),
  feature(decisionRoutes, (parts) => ({
    ...consentDeps(parts),
    keyring: parts.keyring,
    engineConsent: parts.engineConsent,
  })),
  feature(grantRoutes, ({ engineConsent }) => ({ isManaged: engineConsent !== undefined })),
  feature(passwordRoutes, ({ passwords }) => ({ passwords })),
  feature(linkRoutes, linkDeps),
  feature(userRoutes, ({ ids, passwords }) => ({ ids, passwords })),
  feature(accountRoutes, ({ ids }) => ({ ids, deactivateWebhooksOf })),
  feature(accountLimitRoutes, ({ accountDefaults }) => ({ accountDefaults })),
  feature(accountMemberRoutes, ({ ids }) => ({ ids, deactivateWebhooksOf })),
  feature(invitationRoutes, linkDeps),
  feature(roleRoutes, roleDeps),
  feature(apiKeyRoutes, (parts) => ({ ...roleDeps(parts), random: parts.random })),
  feature(auditRoutes, nothing),
  feature(contractRoutes, ({ ids }) => ({ ids })),
  feature(exportRoutes, nothing),
  feature(webhookRoutes, webhookDeps),
  feature(subscriptionRoutes, webhookDeps),
  feature(catalogueRoutes, ({ ids, catalogue }) => ({ ids, catalogue })),
  feature(eventRoutes, ({ ids, enableApiEventQueue, publications, accountLimits }) => ({
    ids,
    accountLimits,
    enableApiEventQueue,
    recordPublications: (one) => publications.record({ ...one, auditEntries: one.auditEntries as AuditRecord[] }),
  })),
  feature(routingExplanationRoutes, nothing),
  feature(dispatchRoutes, (parts) => ({
    ...queueDeps(parts),
    workerId: parts.workerId,
    accountLimits: parts.accountLimits,
  })),
  feature(replayJobRoutes, (parts) => ({ ...queueDeps(parts), accountLimits: parts.accountLimits })),
  feature(targetRoutes, receiverDeps),
  feature(deliveryRoutes, queueDeps),
  feature(jobRoutes, queueDeps),
  feature(dashboardRoutes, ({ catalogue }) => ({ catalogue })),
  feature(realtimeRoutes, ({ realtime }) => realtime),
  feature(healthRoutes, ({ health }) => health),
]
