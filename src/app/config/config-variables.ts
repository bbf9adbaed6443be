import { parseTrustProxy } from '../../http/request/client-address.ts'
import { HASH_MEMORY_LIMIT, HASH_MEMORY_MIN, HASH_PASSES_LIMIT } from '../../identity/password/hash-cost.ts'
import { parseRedirectAllowList } from '../../identity/sign-in/outcome/redirect-allow-list.ts'
import { parseAllowedTargets } from '../../outbound/guard/callback-url.ts'
import {
  bearerToken,
  brandName,
  cookieDomain,
  email,
  emailDomains,
  flag,
  frameAncestors,
  hexColor,
  hookSecrets,
  httpUrl,
  integer,
  list,
  mailbox,
  metricsToken,
  oneOf,
  origins,
  password,
  receiverUrl,
  secrets,
  sinkSecret,
  smtpUrl,
  text,
} from './config-parsers.ts'
import { DATABASE_VARIABLES } from './database-variables.ts'
import { EVENT_VARIABLES } from './event-variables.ts'
import { REALTIME_VARIABLES } from './realtime-variables.ts'
import { secretVariable, variable } from './variable.ts'

/** The environment a process serves (docs/contract/configuration.md#reader). */
export type AppEnv = 'development' | 'certification' | 'production' | 'test'

/** The roles of a process (docs/contract/configuration.md#reader, `SIGNALBOX_ROLES`). */
export const ROLES = ['api', 'dispatcher', 'realtime', 'provisioning', 'maintenance'] as const
export type Role = (typeof ROLES)[number]

function roles(value: string): Role[] {
  const parts = list(value)
  const unknown = parts.find((part) => !ROLES.includes(part as Role))
  if (unknown !== undefined || parts.length === 0) throw new Error(`must list some of ${ROLES.join(', ')}`)
  return [...new Set(parts as Role[])]
}

/** Every variable of the service (docs/contract/configuration.md#reader); `.env.example` and a page are made of it. */
export const VARIABLES = {
  APP_ENV: variable(
    oneOf('development', 'certification', 'production', 'test'),
    'development',
    'The environment. Development generates secrets and allows http:// callbacks; production requires all settings.',
  ),
  HOST: variable(text, '127.0.0.1', 'The address to listen on.'),
  PORT: variable(integer(0, 65535), '3000', 'The port to listen on. 0 selects a free one.'),
  BASE_URL: variable(httpUrl, 'http://localhost:<PORT>', 'The base of its own URLs, without a trailing slash.'),
  ...DATABASE_VARIABLES,
  SIGNALBOX_DATA_DIR: variable(text, '.signalbox', 'The folder of the embedded database and generated secrets.'),
  SIGNALBOX_ROLES: variable(roles, ROLES.join(','), 'The roles of this process. Several processes share one database.'),
  SIGNALBOX_ADMIN_EMAIL: variable(email, 'admin@signalbox.localhost', 'The first administrator of development.'),
  SIGNALBOX_ADMIN_PASSWORD: secretVariable(
    password,
    'development: a random one, printed once',
    'The password of the first administrator: 8 to 256 characters, and outside development not a common one.',
  ),
  SIGNALBOX_CRASH_POINT: variable(
    oneOf('after-claim', 'after-post', 'before-record', 'during-record', 'after-change', 'after-publish'),
    'none',
    'Ends the process at a named point, as kill -9 would. For crash tests; allowed in APP_ENV=test only.',
  ),
  SIGNALBOX_URL: variable(
    httpUrl,
    'http://localhost:3000',
    'The service that the commands listen, trigger, replay and import call. The service itself does not use it.',
  ),
  SIGNALBOX_TOKEN: secretVariable(
    bearerToken,
    'development: the token that npm start stores under SIGNALBOX_DATA_DIR',
    'The API key or session JWT of the same commands.',
  ),
  SIGNALBOX_WEBHOOK_SECRET: secretVariable(
    sinkSecret,
    'none',
    'The secret of a webhook for the commands listen and verify, in place of --secret, which other users of the machine see.',
  ),
  SIGNALBOX_IMPORT_TOKEN: secretVariable(bearerToken, 'none', 'The token for the source of the command import.'),
  SECRET_KEY: secretVariable(
    secrets,
    'generated in development, required otherwise',
    'Encrypts stored secrets (AES-256-GCM). Several, comma-separated: the first encrypts, all decrypt.',
  ),
  SESSION_JWT_SECRET: secretVariable(
    secrets,
    'generated in development, required by the role api otherwise',
    'Signs session JWTs (HS256). Several, comma-separated: the first signs, all verify.',
  ),
  SSO_HANDSHAKE_SECRET: secretVariable(
    secrets,
    'generated in development, required with SSO_TARGETS otherwise',
    'Signs handshake tokens. Must differ from SESSION_JWT_SECRET.',
  ),
  OAUTH_HOOK_SECRET: secretVariable(
    hookSecrets,
    'generated in development, required with IDENTITY_ENGINE=supabase otherwise',
    'Authenticates the access-token hook of a managed engine. Several, comma-separated; `v1,whsec_` in front is allowed.',
  ),
  OAUTH_REGISTRATION: variable(
    flag,
    'false',
    'Whether OAuth clients may register themselves (RFC 7591). They never become first-party clients.',
  ),
  OAUTH_REFRESH_REPEAT_SECONDS: variable(
    integer(0, 60),
    '10',
    'Seconds during which a repeated refresh gets the first answer again. 0: never.',
  ),
  SSO_TARGETS: variable(
    origins,
    'empty (development: loopback origins)',
    'Origins that a handshake may open. Only https:// in production.',
  ),
  AUTH_REDIRECT_ALLOW_LIST: variable(
    parseRedirectAllowList,
    'empty (development: loopback origins)',
    'Allowed return URLs of a sign-in: origins with an optional path prefix (https://app.example.com/app), or custom schemes (com.example.app:).',
  ),
  SESSION_COOKIE_DOMAIN: variable(
    cookieDomain,
    'none: the host of BASE_URL alone',
    'The domain whose hosts all receive the session cookie of the pages, for apps on sibling hosts. Every host of it must be trusted.',
  ),
  PASSWORD_HASH_MEMORY: variable(
    integer(HASH_MEMORY_MIN, HASH_MEMORY_LIMIT),
    '19456',
    'Memory of one password hash (Argon2id), in KiB. A process computes one at a time for each core but one.',
  ),
  PASSWORD_HASH_PASSES: variable(
    integer(1, HASH_PASSES_LIMIT),
    '2',
    'Passes of a password hash over its memory. In production the memory is at least 47104 with 1 pass, 19456 with 2, 12288 with 3, 9216 with 4 and 7168 with more.',
  ),
  SIGN_UP: variable(oneOf('closed', 'invited', 'open'), 'closed', 'Who may sign up with e-mail address and password.'),
  SIGN_UP_EMAIL_DOMAINS: variable(emailDomains, 'empty: all', 'Domains whose addresses may sign up, comma-separated.'),
  SIGN_IN_BY_MAIL: variable(flag, 'false', 'Whether users may sign in with a link or a code by mail.'),
  SSO_HANDSHAKE_ISSUER: variable(text, 'BASE_URL', 'The issuer of handshake tokens.'),
  SSO_ACCEPT_SESSION_JWT: variable(flag, 'true', 'Whether a handshake may carry an ordinary session JWT.'),
  IDENTITY_ENGINE: variable(oneOf('embedded', 'supabase'), 'embedded', 'The OIDC engine.'),
  SUPABASE_URL: variable(httpUrl, 'none', 'The Supabase Auth server.'),
  SUPABASE_ANON_KEY: secretVariable(text, 'none', 'Its public key.'),
  SUPABASE_ISSUER: variable(httpUrl, 'SUPABASE_URL', 'The `iss` of its tokens.'),
  SMTP_URL: secretVariable(
    smtpUrl,
    'none (development: mails are kept and shown at /auth/mail)',
    'The mail server: smtp://user:password@host:587 (with TLS, unless it is this machine or has ?ignoreTLS=true) or smtps://host. Without it no mail is sent.',
  ),
  MAIL_FROM: variable(mailbox, 'none', 'The sender of mails: name@example.com or Name <name@example.com>.'),
  ...EVENT_VARIABLES,
  WEBHOOK_SINK_SECRET: secretVariable(
    sinkSecret,
    "development: the demo webhook's",
    'The secret the development sink verifies with. In certification the sink is mounted only when it is set.',
  ),
  WEBHOOK_ALLOWED_PRIVATE_TARGETS: variable(
    parseAllowedTargets,
    'empty',
    'Private callback targets that are allowed: host[:port] or CIDR[:port], comma-separated. Refused in production.',
  ),
  WEBHOOK_LEDGER_RETENTION_DAYS: variable(
    integer(1, 3650),
    '30',
    'Retention of ledger rows, in days. An account may have its own.',
  ),
  WEBHOOK_CONCURRENCY: variable(
    integer(1, 10000),
    '256',
    'Limit of POSTs in flight of one dispatcher process; up to four times as many where webhooks do not answer.',
  ),
  WEBHOOK_CONCURRENCY_PER_WEBHOOK: variable(
    integer(1, 1000),
    '64',
    'Limit of POSTs in flight for one webhook, over all processes.',
  ),
  PROVISIONING_CONCURRENCY: variable(
    integer(1, 10000),
    '64',
    'Limit of requests in flight to provisioning targets, of one process.',
  ),
  PROVISIONING_CONCURRENCY_PER_TARGET: variable(
    integer(1, 1000),
    '8',
    'Limit of requests in flight to one provisioning target, over all processes.',
  ),
  RATE_LIMIT_PER_MINUTE: variable(integer(1, 10_000_000), '30000', 'Requests a minute, per caller and per address.'),
  RATE_LIMIT_STRICT_PER_MINUTE: variable(
    integer(1, 10_000_000),
    '60',
    'Requests a minute per address to sign-in, exchange, refresh and handshake.',
  ),
  ACCOUNT_WEBHOOKS_LIMIT: variable(
    integer(0, 1_000_000_000),
    '100',
    'Limit of the webhooks of an account for its own members. An operator may set another limit for an account.',
  ),
  ACCOUNT_SUBSCRIPTIONS_LIMIT: variable(
    integer(0, 1_000_000_000),
    '2000',
    'Subscriptions of the webhooks of one account, likewise.',
  ),
  ACCOUNT_PUBLISHED_PER_MINUTE: variable(
    integer(0, 1_000_000_000),
    '6000',
    'Events that the members of one account may publish for it in a minute, likewise.',
  ),
  ACCOUNT_REPLAYS_PER_MINUTE: variable(
    integer(0, 1_000_000_000),
    '600',
    'Dispatches that the members of one account may replay in a minute, tests included, likewise.',
  ),
  TRUST_PROXY: variable(
    parseTrustProxy,
    'false',
    'Trusted proxies for X-Forwarded-For: false, the number of proxies in front, or a comma-separated list of their addresses and networks (10.0.0.0/8, fd00::/8, loopback, linklocal, uniquelocal). The rightmost address that is not one of them counts.',
  ),
  HTTP_MAX_CONNECTIONS: variable(
    integer(1, 100_000),
    '2000',
    'Limit of open client connections of one process. Further ones are closed at once.',
  ),
  CORS_ALLOWED_ORIGINS: variable(
    origins,
    'empty',
    'Origins whose pages may call the API, such as https://app.example.com, comma-separated. No cookies are taken.',
  ),
  PORTAL_FRAME_ANCESTORS: variable(
    frameAncestors,
    'empty: no page',
    'Origins whose pages may show the portal in a frame, comma-separated: https://app.example.com, https://*.example.com.',
  ),
  METRICS_PORT: variable(
    integer(0, 65535),
    'none',
    'A separate port for GET /metrics, on HOST, without a token: keep it internal. 0 selects a free one.',
  ),
  METRICS_TOKEN: secretVariable(
    metricsToken,
    'none',
    'The bearer token for GET /metrics on PORT outside development, at least 16 characters.',
  ),
  ...REALTIME_VARIABLES,
  ALERT_WEBHOOK_URL: secretVariable(
    receiverUrl,
    'none',
    'The URL that gets a POST when an incident begins and when it ends.',
  ),
  ALERT_WEBHOOK_SECRET: secretVariable(
    sinkSecret,
    'none: alerts are not signed',
    'The secret that signs alerts, as whsec_ and base64.',
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: variable(httpUrl, 'none', 'The collector of traces (OTLP over HTTP).'),
  BRAND_NAME: variable(brandName, 'Signalbox', 'The product name on the pages and in the mails.'),
  BRAND_LOGO: variable(
    text,
    'a built-in mark',
    'A file with the logo of these pages: .svg, .png, .webp or .jpg, at most 256 KiB, readable at 32 pixels.',
  ),
  BRAND_COLOR: variable(
    hexColor,
    '#4f46e5',
    'The colour of buttons and links on the pages and in the mails. It is darkened or lightened where the contrast is too low.',
  ),
  MAIL_TEMPLATE_DIR: variable(
    text,
    'built-in templates',
    'A folder with mail.html, mail.txt or both, in place of the built-in templates of mails.',
  ),
  MAIL_LOGO: variable(
    text,
    'BRAND_LOGO, where it is such a file',
    'A file with the logo of mails: .png or .jpg, at most 64 KiB, readable at 32 pixels.',
  ),
  LOG_SUCCESSES_PER_SECOND: variable(
    integer(0, 1_000_000),
    '20',
    'Lines of successes of one kind (request, attempt) that are logged in a second; one line sums the others up. 0 logs all.',
  ),
  LOG_LEVEL: variable(
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    'info',
    'The log level. JSON lines; on a terminal pretty ones, where the packages of development are installed.',
  ),
} as const

type Variables = typeof VARIABLES
/** The parsed values; `undefined` where the variable is not set. */
export type Values = { [Name in keyof Variables]: ReturnType<Variables[Name]['parse']> | undefined }
