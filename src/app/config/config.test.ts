import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, readConfig } from './config.ts'
import { VARIABLES } from './config-variables.ts'

const SECRET = 'a secret of the tests that nobody guesses'
const PRODUCTION = {
  APP_ENV: 'production',
  BASE_URL: 'http://localhost:3000',
  SECRET_KEY: SECRET,
  SESSION_JWT_SECRET: SECRET,
  SSO_HANDSHAKE_SECRET: 'another of the tests for handshakes alone',
  OAUTH_HOOK_SECRET: SECRET,
}

function faultsOf(env: Record<string, string>): string {
  try {
    readConfig(env, '/nowhere')
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as Error).message
  }
  return ''
}

test('the settings of the event log need its servers, and a refused URL is not repeated', () => {
  expect(readConfig({}, '/nowhere').eventLog).toBeUndefined()
  const url = { EVENT_LOG_URL: 'nats://user:the-password@n1,nats://n2:4223' }
  expect(readConfig({ ...url, EVENT_LOG_REPLICAS: '5' }, '/nowhere').eventLog).toMatchObject({
    nats: { servers: ['n1:4222', 'n2:4223'] },
    replicas: 5,
  })
  expect(faultsOf({ EVENT_LOG_STREAM: 'events' })).toMatch(/^EVENT_LOG_STREAM has no effect alone\. Set EVENT_LOG_URL/)
  expect(faultsOf({ ...url, EVENT_LOG_STREAM: 'a.b' })).toMatch(/^EVENT_LOG_STREAM must be/)
  expect(faultsOf({ ...url, EVENT_LOG_REPLICAS: '2' })).toMatch(/^EVENT_LOG_REPLICAS must be/)
  expect(faultsOf({ ...url, EVENT_LOG_NKEY: 'SUAAA' })).toMatch(/^EVENT_LOG_NKEY must be/)
  expect(faultsOf({ ...url, EVENT_LOG_STREAMS: 'x' })).toMatch(/^EVENT_LOG_STREAMS is not a setting/)
  const bus = (REALTIME_BUS_SUBJECT: string, log: object = url) => faultsOf({ ...log, REALTIME_BUS_SUBJECT })
  expect(bus('signalbox.realtime')).toBe('')
  expect(bus('signalbox', {})).toMatch(/^REALTIME_BUS_SUBJECT has no effect alone\. Set EVENT_LOG_URL/)
  for (const subject of ['ev', 'ev.realtime', 'a.*', '>', '$SYS', 'a..b', '.a', 'a b', 'a.'.repeat(500_000)])
    expect(bus(subject)).toMatch(/^REALTIME_BUS_SUBJECT must be/)
  const refused = faultsOf({ EVENT_LOG_URL: 'http://user:the-password@n1' })
  expect(refused).toMatch(/^EVENT_LOG_URL must be/)
  expect(refused).not.toContain('the-password')
})

describe('configuration', () => {
  test('has a default for every variable in development', () => {
    expect(readConfig({}, '/nowhere')).toMatchObject({
      appEnv: 'development',
      host: '127.0.0.1',
      port: 3000,
      dataDir: '/nowhere/.signalbox',
      adminEmail: 'admin@signalbox.localhost',
      enableApiEventQueue: true,
      webhookLedgerRetentionDays: 30,
      logLevel: 'info',
    })
    expect(readConfig({}, '/nowhere').roles).toEqual(['api', 'dispatcher', 'realtime', 'provisioning', 'maintenance'])
  })

  test('treats an empty variable as unset', () => {
    expect(readConfig({ PORT: '', APP_ENV: '' }, '/nowhere').port).toBe(3000)
  })

  test.each([
    ['APP_ENV', 'prod'],
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '3000x'],
    ['PORT', '1e3'],
    ['BASE_URL', 'localhost:3000'],
    ['BASE_URL', 'https://example.com/?a=b'],
    ['DATABASE_URL', 'mysql://localhost/x'],
    ['DATABASE_URL', 'postgres://one,two/x?target_session_attrs=any'],
    ['DATABASE_READ_URL', 'postgres://one,two/x'],
    ['DATABASE_READ_URL', 'mysql://localhost/x'],
    ['SIGN_UP', 'yes'],
    ['SIGN_UP_EMAIL_DOMAINS', 'Example.com'],
    ['SIGN_UP_EMAIL_DOMAINS', 'a@example.com'],
    ['SIGN_UP_EMAIL_DOMAINS', 'example.com,localhost'],
    ['SIGN_IN_BY_MAIL', 'yes'],
    ['SIGNALBOX_ROLES', 'api,cook'],
    ['SIGNALBOX_ROLES', ','],
    ['SIGNALBOX_ADMIN_EMAIL', 'nobody'],
    ['SIGNALBOX_ADMIN_PASSWORD', 'short'],
    ['SECRET_KEY', 'x'.repeat(31)],
    ['SECRET_KEY', `${SECRET},short`],
    ['ENABLE_API_EVENT_QUEUE', 'yes'],
    ['WEBHOOK_SINK_SECRET', 'whsec_short'],
    ['WEBHOOK_SINK_SECRET', `whsec_${Buffer.alloc(23).toString('base64')}`],
    ['WEBHOOK_SINK_SECRET', `whsec_${Buffer.alloc(65).toString('base64')}`],
    ['WEBHOOK_SINK_SECRET', `whsec_${Buffer.alloc(32).toString('base64').slice(0, -1)}`],
    ['WEBHOOK_ALLOWED_PRIVATE_TARGETS', '10.0.0.0/33'],
    ['WEBHOOK_LEDGER_RETENTION_DAYS', '0'],
    ['PASSWORD_HASH_MEMORY', '7'],
    ['PASSWORD_HASH_MEMORY', '262145'],
    ['PASSWORD_HASH_PASSES', '0'],
    ['PASSWORD_HASH_PASSES', '11'],
    ['WEBHOOK_CONCURRENCY', '0'],
    ['AUDIT_RETENTION_DAYS', '-1'],
    ['ALERT_WEBHOOK_URL', 'https://user@alerts.test/'],
    ['LOG_LEVEL', 'loud'],
    ['TRUST_PROXY', 'true'],
    ['TRUST_PROXY', '0'],
    ['TRUST_PROXY', '10.0.0.0/8,0.0.0.0/0'],
    ['HTTP_MAX_CONNECTIONS', '0'],
    ['METRICS_PORT', '65536'],
    ['METRICS_TOKEN', 'only-15-letters'],
    ['METRICS_TOKEN', 'a token with blanks in it'],
    ['METRICS_PORT', '3000'],
    ['AUTH_REDIRECT_ALLOW_LIST', 'https://app.example.test, app'],
    ['SESSION_COOKIE_DOMAIN', '.example.test'],
    ['SESSION_COOKIE_DOMAIN', 'localhost'],
    ['BRAND_NAME', 'x'.repeat(61)],
    ['SSO_TARGETS', 'b.example.test'],
    ['SSO_TARGETS', 'https://b.example.test/'],
    ['SSO_TARGETS', 'https://b.example.test,https://C.example.test'],
    ['SSO_TARGETS', 'https://*.example.test'],
    ['SSO_TARGETS', 'ftp://b.example.test'],
    ['SSO_TARGETS', 'https://b;c.example.test'],
    ['BASE_URL', "http://a'b.localhost"],
    ['AUTH_REDIRECT_ALLOW_LIST', 'https://a;b.example.test'],
    ['SSO_ACCEPT_SESSION_JWT', 'maybe'],
    ['SMTP_URL', 'http://mail.example'],
    ['SMTP_URL', 'smtp://u:p@mail.example?requireTLS=false'],
    ['MAIL_FROM', 'nobody'],
    ['MAIL_FROM', 'Name <a@b.example>\r\nBcc: c@d.example'],
    ['SMTP_URL', 'smtp://mail.example'],
  ])('refuses %s=%s by name', (name, value) => {
    expect(faultsOf({ [name]: value })).toMatch(new RegExp(`^${name} .*[.]$`))
  })

  test.each([
    ['PORT', '0'],
    ['PORT', '65535'],
    ['SECRET_KEY', SECRET],
    ['SIGNALBOX_ROLES', 'api, dispatcher'],
    ['WEBHOOK_LEDGER_RETENTION_DAYS', '1'],
    ['ENABLE_API_EVENT_QUEUE', 'false'],
    ['TRUST_PROXY', 'false'],
    ['TRUST_PROXY', '1'],
    ['TRUST_PROXY', 'loopback, 10.0.0.0/8, fd00::/8'],
    ['METRICS_PORT', '9464'],
    ['PASSWORD_HASH_MEMORY', '8'],
    ['PASSWORD_HASH_MEMORY', '262144'],
    ['PASSWORD_HASH_PASSES', '1'],
    ['PASSWORD_HASH_PASSES', '10'],
    ['AUTH_REDIRECT_ALLOW_LIST', 'https://app.example.test/x, com.example.app:'],
    ['BRAND_NAME', 'Acme Rail'],
    ['METRICS_TOKEN', 'exactly-16-chars'],
    ['SSO_TARGETS', 'https://b.example.test, http://localhost:4001'],
    ['SSO_ACCEPT_SESSION_JWT', 'false'],
  ])('takes %s=%s', (name, value) => {
    expect(faultsOf({ [name]: value })).toBe('')
  })

  test('takes a mail server with its sender, and neither alone', () => {
    const smtp = { SMTP_URL: 'smtps://u:p@mail.example', MAIL_FROM: 'Signalbox <no-reply@mail.example>' }
    expect(readConfig(smtp, '/nowhere').smtp).toEqual({ url: smtp.SMTP_URL, from: smtp.MAIL_FROM })
    for (const query of ['ignoreTLS=true', 'requireTLS=true', 'name=signalbox.example.com&pool=true&maxConnections=2'])
      expect(faultsOf({ ...smtp, SMTP_URL: `smtp://u:p@mail.example?${query}` }), query).toBe('')
    expect(readConfig({}, '/nowhere').smtp).toBeUndefined()
    expect(faultsOf({ MAIL_FROM: 'a@b.example' })).toMatch(/^SMTP_URL and MAIL_FROM belong together/)
  })

  test('lists all errors at once', () => {
    const faults = faultsOf({ PORT: 'x', LOG_LEVEL: 'y', SIGNALBOX_ROLE: 'api' }).split('\n')
    expect(faults).toHaveLength(3)
  })

  test('refuses an unknown SIGNALBOX_ variable, and ignores other unknown variables', () => {
    expect(faultsOf({ SIGNALBOX_PORT: '1' })).toContain('SIGNALBOX_PORT is not a setting')
    for (const name of ['INTEGRATION_REALTIME_TOKEN', 'ALERT_WEBHOOK_TOKEN', 'SSO_HANDSHAKE_KEY', 'SOCIAL_GOOGLE_ID'])
      expect(faultsOf({ [name]: '1' })).toContain(`${name} is not a setting`)
    expect(faultsOf({ HOME: '/root', MY_SIGNALBOX_PORT: '1', INTEGRATION_CRM_URL: 'x', WEBHOOK_SECRET: 'x' })).toBe('')
  })

  test('ignores the service links that Kubernetes sets for a Service named signalbox', () => {
    const links = {
      SIGNALBOX_SERVICE_HOST: '10.0.0.1',
      SIGNALBOX_SERVICE_PORT: '3000',
      SIGNALBOX_API_SERVICE_PORT_HTTP: '3000',
      SIGNALBOX_PORT: 'tcp://10.0.0.1:3000',
      SIGNALBOX_API_PORT: 'tcp://10.0.0.1:3000',
      SIGNALBOX_PORT_3000_TCP: 'tcp://10.0.0.1:3000',
      SIGNALBOX_PORT_3000_TCP_ADDR: '10.0.0.1',
    }
    expect(faultsOf(links)).toBe('')
    expect(faultsOf({ SIGNALBOX_PORT: '3000', SIGNALBOX_SERVICE: 'x' }).split('\n')).toHaveLength(2)
  })

  test('never prints a value', () => {
    expect(faultsOf({ SECRET_KEY: 'hunter2', DATABASE_URL: 'mysql://u:hunter2@h/d' })).not.toContain('hunter2')
    const values = ['hunter2', 'ftp://u:hunter2@h:99999/\r\nX: hunter2', 'https://u:hunter2@h/?hunter2', 'a b,hunter2']
    const refused = Object.keys(VARIABLES).flatMap((name) =>
      values.map((value) => ({ name, text: faultsOf({ [name]: value }) })).filter(({ text }) => text !== ''),
    )
    expect(new Set(refused.map(({ name }) => name)).size).toBeGreaterThan(90)
    for (const { name, text } of refused) expect(text, name).not.toContain('hunter2')
  })

  test.each([
    ['SECRET_KEY', { SIGNALBOX_ROLES: 'maintenance' }],
    ['SESSION_JWT_SECRET', {}],
    ['SSO_HANDSHAKE_SECRET', { SSO_TARGETS: 'https://b.example.test' }],
    ['OAUTH_HOOK_SECRET', { IDENTITY_ENGINE: 'supabase', SUPABASE_URL: 'https://auth.example.test' }],
  ])('requires %s outside development, where something that is on uses it', (name, env) => {
    expect(faultsOf({ ...PRODUCTION, ...env })).toBe('')
    const { [name as keyof typeof PRODUCTION]: _left, ...rest } = PRODUCTION
    expect(faultsOf({ ...rest, ...env })).toContain(`${name} is required when APP_ENV is production`)
  })

  test('requires SECRET_KEY and SESSION_JWT_SECRET alone of a plain service, and the first alone of a worker', () => {
    const { APP_ENV, BASE_URL, SECRET_KEY, SESSION_JWT_SECRET } = PRODUCTION
    expect(faultsOf({ APP_ENV, BASE_URL, SECRET_KEY, SESSION_JWT_SECRET })).toBe('')
    const worker = { SIGNALBOX_ROLES: 'dispatcher,maintenance', SSO_TARGETS: 'https://b.example.test' }
    expect(faultsOf({ APP_ENV, BASE_URL, SECRET_KEY, ...worker })).toBe('')
  })

  test.each([
    [
      'ALERT_WEBHOOK_SECRET',
      `whsec_${Buffer.alloc(32).toString('base64')}`,
      { ALERT_WEBHOOK_URL: 'https://a.test/?k=1' },
    ],
    ['DATABASE_LISTEN_URL', 'postgres://db/a', { DATABASE_URL: 'postgres://pooler/a' }],
    ['DATABASE_READ_URL', 'postgres://standby/a', { DATABASE_URL: 'postgres://db/a' }],
    [
      'DATABASE_READ_LAG_MS',
      '100',
      { DATABASE_URL: 'postgres://one,two/a', DATABASE_READ_URL: 'postgres://c/a?target_session_attrs=standby' },
    ],
    ['SUPABASE_ANON_KEY', 'key', { IDENTITY_ENGINE: 'supabase', SUPABASE_URL: 'https://auth.test' }],
    [
      'INTEGRATION_REALTIME_HOST',
      'realtime.test',
      Object.fromEntries(['APP_ID', 'KEY', 'SECRET', 'CLUSTER'].map((name) => [`INTEGRATION_REALTIME_${name}`, 'x'])),
    ],
  ])('refuses %s where it has no effect', (name, value, env: Record<string, string>) => {
    expect(faultsOf({ [name]: value })).toMatch(new RegExp(`^${name} has no effect .*, or remove it\\.$`))
    expect(faultsOf({ [name]: value, ...env })).toBe('')
  })

  test('closes the sign-up and the sign-in by mail, and refuses to open them without a mail server', () => {
    expect(readConfig({}, '/nowhere')).toMatchObject({ signUp: { mode: 'closed', domains: [] }, signInByMail: false })
    const opened = { SIGN_UP: 'invited', SIGN_UP_EMAIL_DOMAINS: 'a.example, b.example', SIGN_IN_BY_MAIL: 'true' }
    expect(readConfig(opened, '/nowhere')).toMatchObject({
      signUp: { mode: 'invited', domains: ['a.example', 'b.example'] },
      signInByMail: true,
    })
    const faults = faultsOf({ ...PRODUCTION, ...opened })
    expect(faults).toContain('SIGN_UP needs a mail server outside development.')
    expect(faults).toContain('SIGN_IN_BY_MAIL needs a mail server outside development.')
    const smtp = { SMTP_URL: 'smtps://u:p@mail.example', MAIL_FROM: 'no-reply@mail.example' }
    expect(faultsOf({ ...PRODUCTION, ...opened, ...smtp })).toBe('')
    expect(faultsOf({ SIGN_UP: 'closed', SIGN_UP_EMAIL_DOMAINS: 'a.example' })).toContain(
      'SIGN_UP_EMAIL_DOMAINS has no',
    )
  })

  test('refuses settings of the embedded engine beside a managed one, and the server of development elsewhere', () => {
    const managed = { IDENTITY_ENGINE: 'supabase', SUPABASE_URL: 'https://auth.test' }
    expect(faultsOf({ ...managed, OAUTH_REGISTRATION: 'true' })).toContain('OAUTH_REGISTRATION has no effect')
    const embedded = { ...PRODUCTION, INTEGRATION_REALTIME_EMBEDDED: 'true' }
    expect(faultsOf(embedded)).toContain('Set INTEGRATION_REALTIME_CLUSTER to embedded')
  })

  test('lets operators publish test events of realtime, in production where a setting says so', () => {
    const takes = (env: Record<string, string>) => readConfig(env, '/nowhere').realtimeTestEvents
    expect([takes({}), takes({ INTEGRATION_REALTIME_TEST_EVENTS: 'false' })]).toEqual([true, false])
    expect([takes(PRODUCTION), takes({ ...PRODUCTION, INTEGRATION_REALTIME_TEST_EVENTS: 'true' })]).toEqual([
      false,
      true,
    ])
  })

  test('refuses private targets in production', () => {
    expect(faultsOf({ ...PRODUCTION, WEBHOOK_ALLOWED_PRIVATE_TARGETS: '10.0.0.0/8' })).toContain(
      'must be empty in production',
    )
    expect(faultsOf({ ...PRODUCTION, APP_ENV: 'certification', WEBHOOK_ALLOWED_PRIVATE_TARGETS: '10.0.0.0/8' })).toBe(
      '',
    )
  })

  test.each([
    [47_104, 1],
    [19_456, 2],
    [12_288, 3],
    [9_216, 4],
    [7_168, 5],
    [7_168, 6],
    [7_168, 10],
  ])(
    'takes password hashes of %i KiB and %i passes in production, and refuses those of a KiB less',
    (memory, passes) => {
      const env = { PASSWORD_HASH_MEMORY: `${memory}`, PASSWORD_HASH_PASSES: `${passes}` }
      const less = { ...env, PASSWORD_HASH_MEMORY: `${memory - 1}` }
      expect(readConfig({ ...PRODUCTION, ...env }, '/nowhere').passwordHashCost).toEqual({ memory, passes })
      expect(faultsOf({ ...PRODUCTION, ...less })).toMatch(
        new RegExp(
          `^PASSWORD_HASH_MEMORY must be at least ${memory} \\(KiB\\) in production with this PASSWORD_HASH_PASSES: .* remove both\\.$`,
        ),
      )
      for (const APP_ENV of ['development', 'certification', 'test'])
        expect(faultsOf({ ...PRODUCTION, ...less, APP_ENV })).toBe('')
    },
  )

  test('hashes passwords at a safe cost without settings, and refuses fewer passes alone in production', () => {
    expect(readConfig(PRODUCTION, '/nowhere').passwordHashCost).toEqual({ memory: 19_456, passes: 2 })
    expect(faultsOf({ ...PRODUCTION, PASSWORD_HASH_PASSES: '1' })).toContain('must be at least 47104')
  })

  test('takes a cookie domain at or above the host of BASE_URL only', () => {
    const BASE_URL = 'https://id.example.test'
    expect(faultsOf({ BASE_URL, SESSION_COOKIE_DOMAIN: 'example.test' })).toBe('')
    expect(faultsOf({ BASE_URL, SESSION_COOKIE_DOMAIN: 'id.example.test' })).toBe('')
    expect(faultsOf({ BASE_URL, SESSION_COOKIE_DOMAIN: 'ample.test' })).toContain('a domain above it')
    expect(faultsOf({ SESSION_COOKIE_DOMAIN: 'example.test' })).toContain('a domain above it')
  })

  test('reads the disks of cells by name, and refuses others', () => {
    const read = (CELL_DISK_BYTES: string) => readConfig({ CELL_DISK_BYTES }, '/nowhere').cellDiskBytes
    expect(read('c1=1000000, eu-2=2000000')).toEqual(new Map(Object.entries({ c1: 1_000_000, 'eu-2': 2_000_000 })))
    for (const CELL_DISK_BYTES of ['c1', 'c1=', 'C1=1000000', 'c1=1000000,c1=2000000', '=1000000', '5000000'])
      expect(faultsOf({ CELL_DISK_BYTES })).toContain('CELL_DISK_BYTES must list each cell once')
    for (const CELL_DISK_BYTES of ['c1=1', 'c1=1e9', 'c1=c2=1000000'])
      expect(faultsOf({ CELL_DISK_BYTES })).toContain('CELL_DISK_BYTES must be')
  })

  test('refuses one secret for sessions and handshakes', () => {
    expect(faultsOf({ ...PRODUCTION, SSO_HANDSHAKE_SECRET: SECRET })).toContain('must differ from SESSION_JWT_SECRET')
  })

  test('refuses a target of handshakes over http in production', () => {
    const env = { ...PRODUCTION, SSO_TARGETS: 'https://b.example.test,http://c.example.test' }
    expect(faultsOf(env)).toContain('SSO_TARGETS must hold https:// origins only')
    expect(faultsOf({ ...env, APP_ENV: 'certification' })).toBe('')
  })

  test('accepts a crash point in the test environment only', () => {
    expect(faultsOf({ SIGNALBOX_CRASH_POINT: 'after-post' })).toContain('only when APP_ENV is test')
    expect(faultsOf({ ...PRODUCTION, APP_ENV: 'test', SIGNALBOX_CRASH_POINT: 'after-post' })).toBe('')
  })

  test('reads .env in development, under the environment, and nowhere else', () => {
    const directory = mkdtempSync(join(tmpdir(), 'signalbox config '))
    try {
      writeFileSync(join(directory, '.env'), 'PORT=4001\nLOG_LEVEL=debug\n')
      expect(readConfig({ LOG_LEVEL: 'error' }, directory)).toMatchObject({ port: 4001, logLevel: 'error' })
      expect(readConfig(PRODUCTION, directory).port).toBe(3000)
      writeFileSync(join(directory, '.env'), 'SIGNALBOX_TYPO=1\n')
      expect(() => readConfig({}, directory)).toThrow('SIGNALBOX_TYPO')
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  test('every variable has a description and a default in words', () => {
    for (const [name, variable] of Object.entries(VARIABLES)) {
      expect(variable.meaning, name).toMatch(/^[A-Z`].*\.$/)
      expect(variable.fallback, name).not.toBe('')
    }
  })
})
