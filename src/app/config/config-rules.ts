import { findEventLogFaults } from '../../carriage/settings.ts'
import { describeRefused, findRefusedSettings } from '../../operations/doctor/setting-rules.ts'
import { findUnknownSettings } from '../../operations/doctor/unknown-settings.ts'
import { type AppEnv, ROLES, VARIABLES, type Values } from './config-variables.ts'
import { EVENT_VARIABLES } from './event-variables.ts'
import { findCheapHash } from './password-settings.ts'
import { isSocialSetting } from './social-settings.ts'

/** A sentence for each variable that is meant as a setting and is none. */
export function findUnknown(env: Readonly<Record<string, string | undefined>>): string[] {
  return findUnknownSettings(env, { names: Object.keys(VARIABLES), isKnown: isSocialSetting })
}

/** Checks the rules between variables. Returns a sentence for each violation. `nodeEnv`: `NODE_ENV`. */
export function findContradictions(values: Values, nodeEnv: string | undefined): string[] {
  const appEnv = values.APP_ENV ?? 'development'
  return [
    ...findRefused(values, { appEnv, nodeEnv }),
    ...findMissingSecrets(values, appEnv),
    ...findForbidden(values, appEnv),
    ...findCheapHash(values, appEnv),
    ...findIdleSettings(values, appEnv),
    ...findMismatches(values),
    ...findEventLogFaults(values),
  ]
}

function findRefused(values: Values, { appEnv, nodeEnv }: { appEnv: AppEnv; nodeEnv: string | undefined }): string[] {
  const { SECRET_KEY = [], SESSION_JWT_SECRET = [], SSO_HANDSHAKE_SECRET = [], OAUTH_HOOK_SECRET = [] } = values
  const secrets = { SECRET_KEY, SESSION_JWT_SECRET, SSO_HANDSHAKE_SECRET, OAUTH_HOOK_SECRET }
  const { BASE_URL: baseUrl, METRICS_TOKEN: metricsToken } = values
  return findRefusedSettings({ appEnv, nodeEnv, baseUrl, secrets, metricsToken }).map(describeRefused)
}

/** Secrets that an enabled feature uses, outside development. */
function findMissingSecrets(values: Values, appEnv: AppEnv): string[] {
  if (appEnv === 'development') return []
  const isApi = (values.SIGNALBOX_ROLES ?? ROLES).includes('api')
  const users = {
    SECRET_KEY: 'always',
    ...(isApi && { SESSION_JWT_SECRET: 'with the role api' }),
    ...(isApi && (values.SSO_TARGETS ?? []).length > 0 && { SSO_HANDSHAKE_SECRET: 'with SSO_TARGETS' }),
    ...(isApi && values.IDENTITY_ENGINE === 'supabase' && { OAUTH_HOOK_SECRET: 'with IDENTITY_ENGINE=supabase' }),
  } as const
  return Object.entries(users)
    .filter(([name]) => values[name as keyof typeof users] === undefined)
    .map(
      ([name, when]) =>
        `${name} is required when APP_ENV is ${appEnv}${when === 'always' ? '' : `, ${when}`}. Make one with: openssl rand -base64 32`,
    )
}

function findForbidden(values: Values, appEnv: AppEnv): string[] {
  const faults: string[] = []
  if (appEnv === 'production' && (values.WEBHOOK_ALLOWED_PRIVATE_TARGETS ?? []).length > 0)
    faults.push('WEBHOOK_ALLOWED_PRIVATE_TARGETS must be empty in production: callbacks go to public hosts only.')
  if (values.SIGNALBOX_CRASH_POINT !== undefined && appEnv !== 'test')
    faults.push('SIGNALBOX_CRASH_POINT is allowed only when APP_ENV is test. Remove it.')
  if (values.SUPABASE_URL?.startsWith('http:') && !['development', 'test'].includes(appEnv))
    faults.push('SUPABASE_URL must be an https URL outside development.')
  if (appEnv === 'production' && values.SSO_TARGETS?.some((origin) => !origin.startsWith('https:')))
    faults.push('SSO_TARGETS must hold https:// origins only in production: a handshake token is part of the URL.')
  const hasNoMail = values.SMTP_URL === undefined && !['development', 'test'].includes(appEnv)
  if (hasNoMail && !['closed', undefined].includes(values.SIGN_UP))
    faults.push('SIGN_UP needs a mail server outside development. Set SMTP_URL and MAIL_FROM, or remove it.')
  if (hasNoMail && values.SIGN_IN_BY_MAIL)
    faults.push('SIGN_IN_BY_MAIL needs a mail server outside development. Set SMTP_URL and MAIL_FROM, or remove it.')
  return faults
}

/** The settings of the event log beside its servers. */
const EVENT_LOG_OTHERS = Object.keys(EVENT_VARIABLES).filter(
  (name) => name.startsWith('EVENT_LOG_') && name !== 'EVENT_LOG_URL',
) as (keyof Values)[]

const REALTIME_REQUIRED = ['APP_ID', 'KEY', 'SECRET', 'CLUSTER'].map(
  (name) => `INTEGRATION_REALTIME_${name}` as 'INTEGRATION_REALTIME_KEY',
)

/** Settings that would have no effect beside the others. The start fails, because an operator relies on them. */
function findIdleSettings(values: Values, appEnv: AppEnv): string[] {
  const isManaged = values.IDENTITY_ENGINE === 'supabase'
  const hasProvider = REALTIME_REQUIRED.some((name) => (values[name] ?? '').trim() !== '')
  const idle = (names: readonly (keyof Values)[], isUsed: boolean, remedy: string) =>
    isUsed
      ? []
      : names
          .filter((name) => values[name] !== undefined)
          .map((name) => `${name} has no effect ${remedy}, or remove it.`)
  return [
    ...idle(['REALTIME_BUS_SUBJECT'], values.EVENT_LOG_URL !== undefined, 'alone. Set EVENT_LOG_URL'),
    ...idle(EVENT_LOG_OTHERS, values.EVENT_LOG_URL !== undefined, 'alone. Set EVENT_LOG_URL'),
    ...idle(['ALERT_WEBHOOK_SECRET'], values.ALERT_WEBHOOK_URL !== undefined, 'alone. Set ALERT_WEBHOOK_URL'),
    ...idle(['SIGN_UP_EMAIL_DOMAINS'], !['closed', undefined].includes(values.SIGN_UP), 'alone. Set SIGN_UP to open'),
    ...idle(['DATABASE_LISTEN_URL', 'DATABASE_READ_URL'], values.DATABASE_URL !== undefined, 'alone. Set DATABASE_URL'),
    ...idle(['DATABASE_READ_LAG_MS'], values.DATABASE_READ_URL !== undefined, 'alone. Set DATABASE_READ_URL'),
    ...idle(
      ['SUPABASE_URL', 'SUPABASE_ANON_KEY', 'SUPABASE_ISSUER'],
      isManaged,
      'on the embedded engine. Set IDENTITY_ENGINE to supabase',
    ),
    ...idle(
      ['INTEGRATION_REALTIME_HOST', 'INTEGRATION_REALTIME_PORT', 'INTEGRATION_REALTIME_USE_TLS'],
      hasProvider,
      'without a provider. Set INTEGRATION_REALTIME_APP_ID and the others',
    ),
    ...idle(
      ['INTEGRATION_REALTIME_EMBEDDED'],
      appEnv === 'development' || values.INTEGRATION_REALTIME_EMBEDDED === false,
      'outside development. Set INTEGRATION_REALTIME_CLUSTER to embedded',
    ),
    ...idle(
      ['OAUTH_REGISTRATION', 'OAUTH_REFRESH_REPEAT_SECONDS'],
      !isManaged,
      'with IDENTITY_ENGINE=supabase, whose server decides it. Set it there',
    ),
  ]
}

function findMismatches(values: Values): string[] {
  const faults: string[] = []
  if ((values.SMTP_URL === undefined) !== (values.MAIL_FROM === undefined))
    faults.push('SMTP_URL and MAIL_FROM belong together. Set both, or none.')
  const { METRICS_PORT: metricsPort = 0 } = values
  if (metricsPort !== 0 && metricsPort === (values.PORT ?? 3000))
    faults.push('METRICS_PORT must differ from PORT. Choose another port.')
  if (values.IDENTITY_ENGINE === 'supabase' && values.SUPABASE_URL === undefined)
    faults.push('SUPABASE_URL is required when IDENTITY_ENGINE is supabase. Set it to the address of the Auth server.')
  const { SESSION_COOKIE_DOMAIN: domain } = values
  const host = new URL(values.BASE_URL ?? 'http://localhost').hostname
  if (domain !== undefined && host !== domain && !host.endsWith(`.${domain}`))
    faults.push('SESSION_COOKIE_DOMAIN must be the host of BASE_URL or a domain above it. Correct it, or remove it.')
  return faults
}
