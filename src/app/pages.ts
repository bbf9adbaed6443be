import type { Engine } from '../engine/engine.ts'
import { appRoutes } from '../oauth/app.routes.ts'
import { engineInteractionRoutes } from '../oauth/engine-interaction.routes.ts'
import { interactionRoutes } from '../oauth/interaction.routes.ts'
import { SUBMIT_SCRIPT } from '../oauth/provider/submit-page.ts'
import { findSignInApp } from '../oauth/sign-in-app.ts'
import { accountPageRoutes } from '../pages/account.routes.ts'
import type { Brand } from '../pages/brand.ts'
import { buildBrowserCookies } from '../pages/browser-cookie.ts'
import { buildBrowserKeys } from '../pages/browser-key.ts'
import { browserSessionRoutes } from '../pages/browser-session.routes.ts'
import { continueRoutes } from '../pages/continue.routes.ts'
import { COPY_SCRIPT } from '../pages/copy-script.ts'
import { deviceRoutes } from '../pages/device.routes.ts'
import { invitationPageRoutes } from '../pages/invitation.routes.ts'
import { linkPageRoutes } from '../pages/link.routes.ts'
import { ICON } from '../pages/page.ts'
import type { PageFile } from '../pages/page-file.ts'
import { passkeyPageRoutes } from '../pages/passkey.routes.ts'
import { PASSKEY_SCRIPT } from '../pages/passkey-form.ts'
import { passwordChangeRoutes } from '../pages/password-change.routes.ts'
import { SHOW_PASSWORD } from '../pages/password-script.ts'
import { secondStepRoutes } from '../pages/second-step.routes.ts'
import { securityRoutes } from '../pages/security.routes.ts'
import { signInPageRoutes } from '../pages/sign-in.routes.ts'
import type { SignInPageDeps } from '../pages/sign-in-goal.ts'
import { stepUpPageRoutes } from '../pages/step-up.routes.ts'
import type { Random } from '../random.ts'
import { BRIDGE_SCRIPT } from '../social-login/bridge-page.ts'
import { connectionRoutes } from '../social-login/connection.routes.ts'
import { devProviderRoutes } from '../social-login/dev-provider.routes.ts'
import { listProviderButtons } from '../social-login/provider-button.ts'
import { buildOpenTarget, needsHandshake } from '../sso/handshake.ts'
import type { Config } from './config.ts'
import { consentDeps, type Feature, type FeatureParts, feature } from './features.ts'
import { buildRedirectRules, decideCookieSafety } from './identity-engine.ts'

/** What pages need besides the parts of every feature. */
export type PageSettings = Omit<
  SignInPageDeps,
  'ids' | 'random' | 'keys' | 'keyring' | 'serviceName' | 'canSendMail' | 'openTarget' | 'needsHandshake' | 'findApp'
>

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
  const { sessionCookieDomain: domain } = config
  return {
    brand,
    baseUrl,
    authenticate,
    cookies: buildBrowserCookies({ ...decideCookieSafety(config), domain }),
    browserKeys: buildBrowserKeys({ secrets, random }),
    redirectRules: () => buildRedirectRules(config, baseUrl()),
    listProviders: (goal) => listProviderButtons(engine, { ...goal, baseUrl: baseUrl() }),
  }
}

/** Finds the id of a browser that has signed in before in its `Cookie` header. */
export function buildKnownBrowserFinder(
  config: Config,
  parts: { secrets: readonly string[]; random: Random },
): (cookieHeader: string | undefined) => string | undefined {
  const cookies = buildBrowserCookies({ ...decideCookieSafety(config), domain: config.sessionCookieDomain })
  const keys = buildBrowserKeys(parts)
  return (header) => {
    const { browser } = cookies.read(header)
    return browser !== undefined && keys.isKnownBrowserId(browser) ? browser : undefined
  }
}

const pageDeps = ({ ids, random, keys, keyring, passwords, canSendMail, handshakes, pages }: FeatureParts) => ({
  ids,
  random,
  keys,
  keyring,
  passwords,
  canSendMail,
  serviceName: pages.brand.name,
  needsHandshake: (url: string) => needsHandshake(url, handshakes),
  openTarget: buildOpenTarget({ rules: handshakes, random }),
  findApp: findSignInApp,
  ...pages,
})

/**
 * The pages for people, outside the v3 tree: they are in no document and no catalogue, and their events are those of the
 * API routes with the same names.
 */
export const PAGES: readonly Feature[] = [
  feature(signInPageRoutes, pageDeps),
  feature(secondStepRoutes, pageDeps),
  feature(continueRoutes, pageDeps),
  feature(browserSessionRoutes, pageDeps),
  feature(stepUpPageRoutes, pageDeps),
  feature(securityRoutes, pageDeps),
  feature(passkeyPageRoutes, pageDeps),
  feature(connectionRoutes, (parts) => ({ ...pageDeps(parts), engine: parts.engine, binding: parts.binding })),
  feature(deviceRoutes, pageDeps),
  feature(accountPageRoutes, pageDeps),
  feature(passwordChangeRoutes, pageDeps),
  feature(linkPageRoutes, pageDeps),
  feature(invitationPageRoutes, pageDeps),
  feature(appRoutes, (parts) => ({ ...pageDeps(parts), isManaged: parts.engineConsent !== undefined })),
  feature(interactionRoutes, (parts) => ({ ...pageDeps(parts), ...consentDeps(parts) })),
  feature(engineInteractionRoutes, (parts) => ({ ...pageDeps(parts), engineConsent: parts.engineConsent })),
]

/** The pages of an environment: in development with those of the development provider, which answer this machine only. */
export function listPages({ appEnv }: Pick<Config, 'appEnv'>): readonly Feature[] {
  return appEnv === 'development' ? [...PAGES, DEV_PAGES] : PAGES
}

/** The pages of the development provider. */
export const DEV_PAGES = feature(devProviderRoutes, (parts: FeatureParts) => {
  const { devProvider, enableApiEventQueue } = parts
  if (!devProvider) throw new Error('the development provider exists in development')
  return { ...pageDeps(parts), enableApiEventQueue, devProvider }
})

/** The constant files of all pages. A feature with a script of its own adds it here. */
export function listPageFiles(brand: Brand): PageFile[] {
  return [
    brand.style,
    ICON,
    SHOW_PASSWORD,
    PASSKEY_SCRIPT,
    COPY_SCRIPT,
    BRIDGE_SCRIPT,
    SUBMIT_SCRIPT,
    ...(brand.logo ? [brand.logo] : []),
  ]
}
