import { contractRoutes } from '../../contract/contract.routes.ts'
import { catalogueRoutes } from '../../event/catalogue/catalogue.routes.ts'
import { eventRoutes } from '../../event/event.routes.ts'
import { publishRoutes } from '../../event/publish/publish.routes.ts'
import { performPublication } from '../../event/publish/publish-path.ts'
import type { AuditRecord } from '../../event/recording/audit.store.ts'
import { apiKeyRoutes } from '../../identity/access/api-key.routes.ts'
import { roleHolderRoutes } from '../../identity/access/holder/role-holder.routes.ts'
import { roleRoutes } from '../../identity/access/role.routes.ts'
import { accountRoutes } from '../../identity/account/account.routes.ts'
import { checkAccountExists } from '../../identity/account/account.ts'
import { accountMemberRoutes } from '../../identity/account/account-member.routes.ts'
import { accountRoleRoutes } from '../../identity/account/account-role.routes.ts'
import { invitationRoutes } from '../../identity/account/invitation/invitation.routes.ts'
import { accountLimitRoutes } from '../../identity/account/limit/account-limit.routes.ts'
import { connectionActivityRoutes } from '../../identity/connection/activity/connection-activity.routes.ts'
import { connectionRoutes } from '../../identity/connection/connection.routes.ts'
import { connectionMetadataRoutes } from '../../identity/connection/connection-metadata.routes.ts'
import { addressRouteRoutes } from '../../identity/connection/domain/address-route.routes.ts'
import { connectionDomainRoutes } from '../../identity/connection/domain/connection-domain.routes.ts'
import { signInBrowser } from '../../identity/pages/browser/browser-session.ts'
import { portalSessionRoutes } from '../../identity/portal/portal-session.routes.ts'
import { sessionListRoutes } from '../../identity/session/list/session-list.routes.ts'
import { sessionRoutes } from '../../identity/session/session.routes.ts'
import { mailLoginRoutes } from '../../identity/sign-in/by-mail/mail-login.routes.ts'
import { loginRoutes } from '../../identity/sign-in/local/login.routes.ts'
import { passkeyRoutes } from '../../identity/sign-in/passkey-login/passkey.routes.ts'
import { passkeyLoginRoutes } from '../../identity/sign-in/passkey-login/passkey-login.routes.ts'
import { factorLoginRoutes } from '../../identity/sign-in/second-factor/factor-login.routes.ts'
import { factorRemovalRoutes } from '../../identity/sign-in/second-factor/factor-removal.routes.ts'
import { secondFactorRoutes } from '../../identity/sign-in/second-factor/second-factor.routes.ts'
import { stepUpRoutes } from '../../identity/sign-in/step-up/step-up.routes.ts'
import { signUpRoutes } from '../../identity/sign-up/sign-up.routes.ts'
import { identityRoutes } from '../../identity/social-login/identity/identity.routes.ts'
import { userIdentityRoutes } from '../../identity/social-login/identity/user-identity.routes.ts'
import { providerOverviewRoutes } from '../../identity/social-login/overview/provider-overview.routes.ts'
import { samlRoutes } from '../../identity/social-login/saml/saml.routes.ts'
import { type SocialLoginDeps, socialLoginRoutes } from '../../identity/social-login/social-login.routes.ts'
import { buildOpenTarget } from '../../identity/sso/handshake.ts'
import { ssoRoutes } from '../../identity/sso/sso.routes.ts'
import { targetOverviewRoutes } from '../../identity/sso/target-overview.routes.ts'
import { effectiveAccessRoutes } from '../../identity/user/effective-access/effective-access.routes.ts'
import { ownUserRoutes } from '../../identity/user/own/own-user.routes.ts'
import { linkRoutes } from '../../identity/user/password/link.routes.ts'
import { passwordRoutes } from '../../identity/user/password/password.routes.ts'
import { pictureRoutes } from '../../identity/user/picture/picture.routes.ts'
import { userRoutes } from '../../identity/user/user.routes.ts'
import { clientRoutes } from '../../oauth/client/client.routes.ts'
import { secretListRoutes } from '../../oauth/client/secret-list.routes.ts'
import { decisionRoutes } from '../../oauth/decision/decision.routes.ts'
import { exchangeRoutes } from '../../oauth/exchange/exchange.routes.ts'
import { clientUsageRoutes } from '../../oauth/grant/client-usage.routes.ts'
import { grantRoutes } from '../../oauth/grant/grant.routes.ts'
import { tokenHookRoutes } from '../../oauth/hook/token-hook.routes.ts'
import { activitySumRoutes } from '../../operations/activity/activity-sum.routes.ts'
import { connectionSeriesRoutes } from '../../operations/activity/connection-series.routes.ts'
import { auditRoutes } from '../../operations/audit/audit.routes.ts'
import { decisionLogRoutes } from '../../operations/audit/decision-log.routes.ts'
import { signInLogRoutes } from '../../operations/audit/sign-in-log.routes.ts'
import { accountActivityRoutes } from '../../operations/dashboard/account-activity.routes.ts'
import { activityRoutes } from '../../operations/dashboard/activity.routes.ts'
import { breakdownRoutes } from '../../operations/dashboard/breakdown.routes.ts'
import { dashboardRoutes } from '../../operations/dashboard/dashboard.routes.ts'
import { queueDepthRoutes } from '../../operations/dashboard/queue-depth.routes.ts'
import { healthRoutes } from '../../operations/health/health.routes.ts'
import { serviceRoutes } from '../../operations/health/service-facts.routes.ts'
import { jobRoutes } from '../../provisioning/job/job.routes.ts'
import { deliveryRoutes } from '../../provisioning/ledger/delivery.routes.ts'
import { streamRoutes } from '../../provisioning/stream/stream.routes.ts'
import { targetRoutes } from '../../provisioning/target/target.routes.ts'
import { channelMemberRoutes } from '../../realtime/channel-member.routes.ts'
import { realtimePageRoutes } from '../../realtime/page.routes.ts'
import { realtimeRoutes } from '../../realtime/realtime.routes.ts'
import { testEventRoutes } from '../../realtime/test-event.routes.ts'
import { routingExplanationRoutes } from '../../webhook/explanation/routing-explanation.routes.ts'
import { routingForecastRoutes } from '../../webhook/explanation/routing-forecast.routes.ts'
import { exportRoutes } from '../../webhook/export/export.routes.ts'
import { dispatchRoutes } from '../../webhook/ledger/dispatch.routes.ts'
import { deleteLedger } from '../../webhook/ledger/dispatch.ts'
import { cancelWaitingDispatches } from '../../webhook/ledger/removal.store.ts'
import { mailSettingRoutes } from '../../webhook/mail/mail-setting.routes.ts'
import { pullRoutes } from '../../webhook/pull/pull.routes.ts'
import { signingKeyRoutes } from '../../webhook/registry/signing-key.routes.ts'
import { webhookRoutes } from '../../webhook/registry/webhook.routes.ts'
import { deactivateWebhooksOf, type WebhookDeps } from '../../webhook/registry/webhook.ts'
import { replayJobRoutes } from '../../webhook/replay/replay-job.routes.ts'
import { subscriptionRoutes } from '../../webhook/subscription/subscription.routes.ts'
import { type Feature, type FeatureParts, feature } from './feature.ts'
import { decisionDeps } from './pages.ts'

type Added<Deps, Name extends keyof Deps> = (parts: FeatureParts) => Pick<Deps, Name>

const webhookDeps: Added<WebhookDeps, 'checkAccountExists' | 'deleteLedger' | 'cancelWaitingDispatches'> = ({
  workerId,
}) => ({
  checkAccountExists,
  deleteLedger,
  cancelWaitingDispatches: (db, webhook, now) => cancelWaitingDispatches(db, { webhook, workerId, now }),
})

const socialLoginDeps: Added<SocialLoginDeps, 'brand' | 'redirectRules' | 'keepInBrowser' | 'openTarget'> = ({
  pages,
  handshakes,
  random,
}) => ({
  brand: pages.brand,
  redirectRules: pages.redirectRules,
  keepInBrowser: (tokens, signIn) => signInBrowser({ ...pages, random }, tokens, signIn),
  openTarget: buildOpenTarget({ rules: handshakes, random }),
})

/** All features with routes: catalogue, permissions, document and audit follow. The sink is of some environments. */
export const FEATURES: readonly Feature[] = [
  feature(loginRoutes),
  feature(mailLoginRoutes),
  feature(factorLoginRoutes),
  feature(secondFactorRoutes),
  feature(stepUpRoutes),
  feature(passkeyRoutes),
  feature(passkeyLoginRoutes),
  feature(factorRemovalRoutes),
  feature(socialLoginRoutes, socialLoginDeps),
  feature(samlRoutes, socialLoginDeps),
  feature(identityRoutes, socialLoginDeps),
  feature(userIdentityRoutes),
  feature(providerOverviewRoutes, ({ pages }) => ({ redirectRules: pages.redirectRules })),
  feature(sessionRoutes),
  feature(sessionListRoutes),
  feature(ssoRoutes, ({ handshakes: rules }) => ({ rules })),
  feature(targetOverviewRoutes, ({ handshakes: rules }) => ({ rules })),
  feature(tokenHookRoutes),
  feature(exchangeRoutes),
  feature(clientRoutes),
  feature(clientUsageRoutes),
  feature(secretListRoutes),
  feature(decisionLogRoutes),
  feature(decisionRoutes, decisionDeps),
  feature(grantRoutes, ({ engineConsent }) => ({ isManaged: engineConsent !== undefined })),
  feature(passwordRoutes),
  feature(linkRoutes),
  feature(ownUserRoutes),
  feature(pictureRoutes),
  feature(signUpRoutes),
  feature(userRoutes),
  feature(effectiveAccessRoutes),
  feature(signInLogRoutes),
  feature(accountRoutes, () => ({ deactivateWebhooksOf })),
  feature(accountLimitRoutes),
  feature(accountMemberRoutes, () => ({ deactivateWebhooksOf })),
  feature(accountRoleRoutes),
  feature(invitationRoutes),
  feature(connectionRoutes),
  feature(connectionActivityRoutes),
  feature(connectionMetadataRoutes),
  feature(addressRouteRoutes),
  feature(connectionDomainRoutes),
  feature(portalSessionRoutes),
  feature(roleRoutes),
  feature(roleHolderRoutes),
  feature(apiKeyRoutes),
  feature(auditRoutes),
  feature(contractRoutes),
  feature(exportRoutes),
  feature(webhookRoutes, webhookDeps),
  feature(signingKeyRoutes),
  feature(subscriptionRoutes, webhookDeps),
  feature(mailSettingRoutes),
  feature(catalogueRoutes),
  feature(
    publishRoutes,
    ({ publications }) => ({
      recordPublications: (input) =>
        publications.record({ ...input, auditEntries: input.auditEntries as AuditRecord[] }),
    }),
    performPublication,
  ),
  feature(eventRoutes),
  feature(routingExplanationRoutes),
  feature(routingForecastRoutes),
  feature(dispatchRoutes),
  feature(pullRoutes, ({ pulls }) => pulls),
  feature(replayJobRoutes),
  feature(targetRoutes),
  feature(streamRoutes),
  feature(deliveryRoutes),
  feature(jobRoutes),
  feature(dashboardRoutes),
  feature(queueDepthRoutes),
  feature(activityRoutes),
  feature(accountActivityRoutes),
  feature(breakdownRoutes),
  feature(activitySumRoutes),
  feature(connectionSeriesRoutes),
  feature(realtimeRoutes, ({ realtime }) => realtime),
  feature(channelMemberRoutes, ({ realtime }) => realtime),
  feature(realtimePageRoutes, ({ realtime }) => realtime),
  feature(testEventRoutes, ({ realtime }) => realtime),
  feature(healthRoutes, ({ health }) => health),
  feature(serviceRoutes, ({ readServiceFacts: readFacts }) => ({ readFacts })),
]
