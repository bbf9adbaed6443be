import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { Pipeline } from '../../http/pipeline/pipeline-deps.ts'
import type { Engine } from '../../identity/engine/engine.ts'
import { accountPageRoutes } from '../../identity/pages/account/account.routes.ts'
import { deviceRoutes } from '../../identity/pages/account/device.routes.ts'
import { emailChangePageRoutes } from '../../identity/pages/account/email-change.routes.ts'
import { invitationPageRoutes } from '../../identity/pages/account/invitation.routes.ts'
import { linkPageRoutes } from '../../identity/pages/account/link.routes.ts'
import { profilePageRoutes } from '../../identity/pages/account/profile.routes.ts'
import type { Brand } from '../../identity/pages/brand/brand.ts'
import type { PageFile } from '../../identity/pages/brand/page-file.ts'
import { buildBrowserCookies } from '../../identity/pages/browser/browser-cookie.ts'
import { buildBrowserKeys } from '../../identity/pages/browser/browser-key.ts'
import { ICON } from '../../identity/pages/frame/page.ts'
import { mailLoginPageRoutes } from '../../identity/pages/mail-login/mail-login.routes.ts'
import { organizationPageRoutes } from '../../identity/pages/organization/organization.routes.ts'
import { PAGE_SCRIPTS } from '../../identity/pages/script/page-script.ts'
import { passkeyPageRoutes } from '../../identity/pages/security/passkey.routes.ts'
import { passwordChangeRoutes } from '../../identity/pages/security/password-change.routes.ts'
import { securityRoutes } from '../../identity/pages/security/security.routes.ts'
import { stepUpPageRoutes } from '../../identity/pages/security/step-up.routes.ts'
import { browserSessionRoutes } from '../../identity/pages/sign-in/browser-session.routes.ts'
import { continueRoutes } from '../../identity/pages/sign-in/continue.routes.ts'
import { secondStepRoutes } from '../../identity/pages/sign-in/second-step.routes.ts'
import { signInPageRoutes } from '../../identity/pages/sign-in/sign-in.routes.ts'
import { signUpPageRoutes } from '../../identity/pages/sign-up/sign-up.routes.ts'
import { connectionRoutes } from '../../identity/social-login/identity/connection.routes.ts'
import { devProviderRoutes } from '../../identity/social-login/provider/dev-provider.routes.ts'
import { listProviderButtons } from '../../identity/social-login/provider/provider-button.ts'
import { sessionProofRoutes } from '../../identity/social-login/session-proof/session-proof.routes.ts'
import { buildOpenTarget, needsHandshake } from '../../identity/sso/handshake.ts'
import { buildFindApp } from '../../oauth/consent/sign-in-app.ts'
import { engineInteractionRoutes } from '../../oauth/decision/engine-interaction.routes.ts'
import { interactionRoutes } from '../../oauth/decision/interaction.routes.ts'
import { buildApiAudience } from '../../oauth/exchange/token-issuer.ts'
import { appRoutes } from '../../oauth/grant/app.routes.ts'
import { unsubscribeRoutes } from '../../webhook/mail/unsubscribe.routes.ts'
import type { Config } from '../config/config.ts'
import { type Feature, type FeatureParts, feature, type PageSettings } from './feature.ts'
import { buildRedirectRules, decideCookieSafety } from './identity-engine.ts'

/** Builds the settings of the pages from the configuration. */
export function buildPageSettings(parts: {
  config: Config
  brand: Brand
  secrets: readonly string[]
  random: Random
  baseUrl: () => string
  authenticate: PageSettings['authenticate']
  engine: Engine
}): PageSettings {
  const { config, brand, secrets, random, baseUrl, authenticate, engine } = parts
  return {
    brand,
    baseUrl,
    authenticate,
    ...buildBrowserParts(config, { secrets, random, issuer: baseUrl }),
    redirectRules: () => buildRedirectRules(config, baseUrl()),
    listProviders: (goal) => listProviderButtons(engine, { ...goal, baseUrl: baseUrl() }),
  }
}

/** Builds the cookies of browsers, and the keys of their tokens. */
export function buildBrowserParts(
  config: Config,
  keys: { secrets: readonly string[]; random: Random; issuer: () => string },
): Pick<PageSettings, 'cookies' | 'browserKeys'> {
  const { sessionCookieDomain: domain } = config
  return {
    cookies: buildBrowserCookies({ ...decideCookieSafety(config), domain }),
    browserKeys: buildBrowserKeys(keys),
  }
}

/** Builds the check whether the user of a sign-in has signed in with this browser before, by the `Cookie` header. */
export function buildKnownBrowserFinder(
  config: Config,
  parts: { secrets: readonly string[]; random: Random; issuer: () => string; clock: Pick<Clock, 'now'> },
): Pipeline['findKnownBrowser'] {
  const { cookies, browserKeys } = buildBrowserParts(config, parts)
  return (header, body) => {
    const { browser } = cookies.read(header)
    const { email } = (body ?? {}) as { email?: unknown }
    if (browser === undefined || typeof email !== 'string') return undefined
    return browserKeys.findKnownBrowser(browser, { email, now: new Date(parts.clock.now()) })
  }
}

/** Dependencies of decisions about what apps may do. */
export const decisionDeps = ({ baseUrl, engineConsent }: FeatureParts) => ({
  apiResource: () => buildApiAudience(baseUrl()),
  engineConsent,
})

const pageDeps = ({ random, canSendMail, signUp, signInByMail, handshakes, flowCookies, pages }: FeatureParts) => ({
  canSignUp: canSendMail && signUp.mode !== 'closed',
  canSignInByMail: canSendMail && signInByMail,
  needsHandshake: (url: string) => needsHandshake(url, handshakes),
  openTarget: buildOpenTarget({ rules: handshakes, random }),
  findApp: buildFindApp(flowCookies),
  ...pages,
})

/** The pages for users, outside the v3 tree: no operations of their own, and the events of the API's routes. */
export const PAGES: readonly Feature[] = [
  feature(signInPageRoutes, pageDeps),
  feature(secondStepRoutes, pageDeps),
  feature(continueRoutes, pageDeps),
  feature(browserSessionRoutes, pageDeps),
  feature(stepUpPageRoutes, pageDeps),
  feature(securityRoutes, pageDeps),
  feature(passkeyPageRoutes, pageDeps),
  feature(connectionRoutes, pageDeps),
  feature(sessionProofRoutes, pageDeps),
  feature(deviceRoutes, pageDeps),
  feature(accountPageRoutes, pageDeps),
  feature(passwordChangeRoutes, pageDeps),
  feature(linkPageRoutes, pageDeps),
  feature(profilePageRoutes, pageDeps),
  feature(emailChangePageRoutes, pageDeps),
  feature(invitationPageRoutes, pageDeps),
  feature(organizationPageRoutes, pageDeps),
  feature(mailLoginPageRoutes, pageDeps),
  feature(signUpPageRoutes, pageDeps),
  feature(appRoutes, (parts) => ({ ...pageDeps(parts), isManaged: parts.engineConsent !== undefined })),
  feature(interactionRoutes, (parts) => ({ ...pageDeps(parts), ...decisionDeps(parts) })),
  feature(unsubscribeRoutes, pageDeps),
  feature(engineInteractionRoutes, (parts) => ({ ...pageDeps(parts), engineConsent: parts.engineConsent })),
]

/** The pages of an environment: in development with those of the development provider, which answer this machine only. */
export function listPages({ appEnv }: Pick<Config, 'appEnv'>): readonly Feature[] {
  return appEnv === 'development' ? [...PAGES, DEV_PAGES] : PAGES
}

/** The pages of the development provider. */
export const DEV_PAGES = feature(devProviderRoutes, (parts: FeatureParts) => {
  const { devProvider } = parts
  if (!devProvider) throw new Error('the development provider exists in development')
  return { ...pageDeps(parts), devProvider }
})

/** The constant files of all pages. */
export function listPageFiles(brand: Brand): PageFile[] {
  return [brand.style, ICON, ...PAGE_SCRIPTS, ...(brand.logo ? [brand.logo] : [])]
}
