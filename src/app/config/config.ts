import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { readEventLogSettings } from '../../carriage/settings.ts'
import type { AccountLimits } from '../../identity/account/limit/account-limit.store.ts'
import type { EnabledProvider } from '../../identity/engine/embedded/provider/provider-declaration.ts'
import { findContradictions, findUnknown } from './config-rules.ts'
import { ROLES, type Role, VARIABLES, type Values } from './config-variables.ts'
import { listIdleSettings } from './idle-settings.ts'
import { readHashCost, readSignUp } from './password-settings.ts'
import { readRealtimeConfig, readRealtimeSettings } from './realtime-settings.ts'
import { readSecretFiles } from './secret-files.ts'
import { readSocialSettings } from './social-settings.ts'

/** An invalid configuration. The message names the variable, the rule and the remedy, never a value. */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ConfigError'
  }
}

/** The secrets of docs/contract/configuration.md#service-secrets, the newest first; none for a feature that is off. */
export interface ServiceSecrets {
  secretKey: string[]
  sessionJwt: string[]
  ssoHandshake: string[]
  oauthHook: string[]
}

/** The configuration. Only this file reads the environment, once. */
export type Config = ReturnType<typeof buildConfig> & { socialProviders: readonly EnabledProvider[] }

/** Variables by name. */
export type Environment = Record<string, string | undefined>

/**
 * Reads `environment`, and in development the `.env` file for variables that it does not set
 * (docs/contract/configuration.md#reader). Throws a `ConfigError` that lists all errors: invalid values, unknown
 * settings, missing secrets, settings that the environment forbids or that would have no effect.
 */
export function readConfig(environment: Environment = process.env, directory = process.cwd()): Config {
  const { environment: env, faults: fileFaults } = readSecretFiles(withDotEnv(environment, directory), directory)
  const { values, faults } = parseValues(env)
  faults.push(...fileFaults, ...findUnknown(env))
  const social = readSocialSettings(env, {
    appEnv: values.APP_ENV ?? 'development',
    isManaged: values.IDENTITY_ENGINE === 'supabase',
  })
  faults.push(...social.faults)
  const config = { ...buildConfig(values, directory), socialProviders: social.providers }
  faults.push(...findContradictions(values, env.NODE_ENV), ...findSharedSecrets(config.givenSecrets))
  if (faults.length > 0) throw new ConfigError(faults.join('\n'))
  return config
}

/** Sources of `readConfig`: this process, in development `.env`, and files of secrets. Throws a `ConfigError`. */
export function readEnvironment(directory = process.cwd()): Environment {
  return readSecretFiles(withDotEnv(process.env, directory), directory).environment
}

/** Removes a variable of this process, so that no child inherits it. */
export function takeVariable(name: string): string | undefined {
  const value = process.env[name]
  delete process.env[name]
  return value
}

/** `environment`, and in development the `.env` file for variables that it does not set. Throws a `ConfigError`. */
export function withDotEnv(environment: Environment = process.env, directory = process.cwd()): Environment {
  if ((environment.APP_ENV ?? 'development') !== 'development') return environment
  let text: string
  try {
    text = readFileSync(resolve(directory, '.env'), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return environment
    throw new ConfigError(
      `.env cannot be read (${(error as NodeJS.ErrnoException).code}). Make it readable or remove it.`,
    )
  }
  return { ...parseEnv(text), ...environment }
}

/** Parses every variable that is given. Returns a sentence for each that breaks its rule. */
export function parseValues(env: Environment): { values: Values; faults: string[] } {
  const faults: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, variable] of Object.entries(VARIABLES)) {
    const text = env[name]
    if (text === undefined || text === '') continue
    try {
      values[name] = variable.parse(text)
    } catch (error) {
      faults.push(`${name} ${(error as Error).message}.`)
    }
  }
  return { values: values as Values, faults }
}

/** The bounds of the use of the database, and of a start and a stop. */
function readDatabaseBounds(values: Values) {
  return {
    databasePoolSize: values.DATABASE_POOL_SIZE ?? 10,
    databaseReadPoolSize: values.DATABASE_READ_POOL_SIZE ?? 5,
    // The replica that lists may read, and their wait for the position of the primary.
    ...{ databaseReadUrl: values.DATABASE_READ_URL, databaseReadLagMs: values.DATABASE_READ_LAG_MS ?? 500 },
    databaseWorkerPoolSize: values.DATABASE_WORKER_POOL_SIZE ?? 5,
    databaseWaitSeconds: values.DATABASE_WAIT_SECONDS ?? 60,
    // Maximum size of the databases on their disks.
    ...{ databaseDiskBytes: values.DATABASE_DISK_BYTES, cellDiskBytes: values.CELL_DISK_BYTES },
    shutdownDelaySeconds: values.SHUTDOWN_DELAY_SECONDS ?? 0,
  }
}

function buildConfig(values: Values, directory: string) {
  const realtime = readRealtimeSettings(values)
  const givenSecrets: Partial<ServiceSecrets> = {
    ...(values.SECRET_KEY && { secretKey: values.SECRET_KEY }),
    ...(values.SESSION_JWT_SECRET && { sessionJwt: values.SESSION_JWT_SECRET }),
    ...(values.SSO_HANDSHAKE_SECRET && { ssoHandshake: values.SSO_HANDSHAKE_SECRET }),
    ...(values.OAUTH_HOOK_SECRET && { oauthHook: values.OAUTH_HOOK_SECRET }),
  }
  return {
    appEnv: values.APP_ENV ?? 'development',
    host: values.HOST ?? '127.0.0.1',
    port: values.PORT ?? 3000,
    /** Undefined: derived from the actual port. */
    baseUrl: values.BASE_URL,
    databaseUrl: values.DATABASE_URL,
    /** Default: `databaseUrl`. */
    databaseListenUrl: values.DATABASE_LISTEN_URL,
    ...readDatabaseBounds(values),
    dataDir: resolve(directory, values.SIGNALBOX_DATA_DIR ?? '.signalbox'),
    roles: (values.SIGNALBOX_ROLES ?? ROLES) as readonly Role[],
    adminEmail: values.SIGNALBOX_ADMIN_EMAIL ?? 'admin@signalbox.localhost',
    adminPassword: values.SIGNALBOX_ADMIN_PASSWORD,
    crashPoint: values.SIGNALBOX_CRASH_POINT,
    /** Those missing are generated in development by `loadServiceSecrets`. */
    givenSecrets,
    passwordHashCost: readHashCost(values),
    identityEngine: values.IDENTITY_ENGINE ?? 'embedded',
    supabaseUrl: values.SUPABASE_URL,
    supabaseAnonKey: values.SUPABASE_ANON_KEY,
    supabaseIssuer: values.SUPABASE_ISSUER ?? values.SUPABASE_URL,
    oauthRegistration: values.OAUTH_REGISTRATION ?? false,
    oauthRefreshRepeatSeconds: values.OAUTH_REFRESH_REPEAT_SECONDS ?? 10,
    /** Origins; development adds every loopback origin. */
    ssoTargets: values.SSO_TARGETS ?? [],
    /** Default: the base URL. */
    ssoHandshakeIssuer: values.SSO_HANDSHAKE_ISSUER,
    ssoAcceptSessionJwt: values.SSO_ACCEPT_SESSION_JWT ?? true,
    smtp: values.SMTP_URL && values.MAIL_FROM ? { url: values.SMTP_URL, from: values.MAIL_FROM } : undefined,
    ...readSignUp(values),
    enableApiEventQueue: values.ENABLE_API_EVENT_QUEUE ?? true,
    eventLog: readEventLogSettings(values),
    webhookSinkSecret: values.WEBHOOK_SINK_SECRET,
    webhookAllowedPrivateTargets: values.WEBHOOK_ALLOWED_PRIVATE_TARGETS ?? [],
    webhookLedgerRetentionDays: values.WEBHOOK_LEDGER_RETENTION_DAYS ?? 30,
    /** 0: entries are never deleted. */
    auditRetentionDays: values.AUDIT_RETENTION_DAYS ?? 365,
    webhookConcurrency: values.WEBHOOK_CONCURRENCY ?? 256,
    webhookConcurrencyPerWebhook: values.WEBHOOK_CONCURRENCY_PER_WEBHOOK ?? 64,
    realtime,
    ...readRealtimeConfig(values),
    ...readServing(values),
    alertWebhookUrl: values.ALERT_WEBHOOK_URL,
    alertWebhookSecret: values.ALERT_WEBHOOK_SECRET,
    provisioningConcurrency: values.PROVISIONING_CONCURRENCY ?? 64,
    provisioningConcurrencyPerTarget: values.PROVISIONING_CONCURRENCY_PER_TARGET ?? 8,
    /** Of an account without its own. */
    accountLimits: readAccountLimits(values),
    sessionCookieDomain: values.SESSION_COOKIE_DOMAIN,
    redirectAllowList: values.AUTH_REDIRECT_ALLOW_LIST ?? [],
    ...readBrand(values, directory),
    logLevel: values.LOG_LEVEL ?? 'info',
    /** Lines of one kind in a second that are logged one by one; 0: all. */
    logSuccessesPerSecond: values.LOG_SUCCESSES_PER_SECOND ?? 20,
    /** Only without it the demonstration lowers the level. */
    isLogLevelGiven: values.LOG_LEVEL !== undefined,
    /** Given settings without effect in this environment, which the start reports. */
    idleSettings: listIdleSettings(values, realtime.kind),
  }
}

/** Answers of the service by caller, and its reports. */
function readServing(values: Values) {
  return {
    rateLimitPerMinute: values.RATE_LIMIT_PER_MINUTE ?? 30_000,
    rateLimitStrictPerMinute: values.RATE_LIMIT_STRICT_PER_MINUTE ?? 60,
    trustProxy: values.TRUST_PROXY ?? false,
    httpMaxConnections: values.HTTP_MAX_CONNECTIONS ?? 2_000,
    metricsPort: values.METRICS_PORT,
    metricsToken: values.METRICS_TOKEN,
    otlpEndpoint: values.OTEL_EXPORTER_OTLP_ENDPOINT,
    corsAllowedOrigins: values.CORS_ALLOWED_ORIGINS ?? [],
    portalFrameAncestors: values.PORTAL_FRAME_ANCESTORS ?? [],
  }
}

function readAccountLimits(values: Values): AccountLimits {
  return {
    webhooks: values.ACCOUNT_WEBHOOKS_LIMIT ?? 100,
    subscriptions: values.ACCOUNT_SUBSCRIPTIONS_LIMIT ?? 2_000,
    published_per_minute: values.ACCOUNT_PUBLISHED_PER_MINUTE ?? 6_000,
    replays_per_minute: values.ACCOUNT_REPLAYS_PER_MINUTE ?? 600,
    ledger_retention_days: values.WEBHOOK_LEDGER_RETENTION_DAYS ?? 30,
  }
}

/** A session and a handshake token must not be signed with the same secret. Returns a sentence when they are. */
export function findSharedSecrets({ sessionJwt, ssoHandshake }: Partial<ServiceSecrets>): string[] {
  if (!ssoHandshake?.some((secret) => sessionJwt?.includes(secret))) return []
  return ['SSO_HANDSHAKE_SECRET must differ from SESSION_JWT_SECRET. Choose another one.']
}

function readBrand(values: Values, directory: string) {
  const locate = (path: string | undefined) => (path === undefined ? undefined : resolve(directory, path))
  return {
    brandName: values.BRAND_NAME ?? 'Signalbox',
    /** `#rrggbb`; undefined for the built-in colour. */
    brandColor: values.BRAND_COLOR,
    brandLogoPath: locate(values.BRAND_LOGO),
    mailTemplateDir: locate(values.MAIL_TEMPLATE_DIR),
    mailLogoPath: locate(values.MAIL_LOGO),
  }
}
