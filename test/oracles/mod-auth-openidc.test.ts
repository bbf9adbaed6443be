import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type OauthClient,
  type OauthFixture,
  openBrowser,
  startOauthFixture,
} from '../harness/browser/oauth-service.ts'
import { findFreePort } from '../harness/process/port.ts'
import { startProcess } from '../harness/process/process.ts'
import { waitFor } from '../harness/run/wait.ts'

/** Apache with mod_auth_openidc as a client: it needs the packages `apache2` and `libapache2-mod-auth-openidc` of Debian. */

const MODULES = '/usr/lib/apache2/modules'
const NEEDED = ['/usr/sbin/apache2', `${MODULES}/mod_auth_openidc.so`]

let fixture: OauthFixture
let folder: string
beforeAll(async () => {
  fixture = await startOauthFixture()
  folder = await mkdtemp(join(tmpdir(), 'signalbox-apache-'))
})
afterAll(async () => {
  await fixture[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

/** The server shows whom it knows in two headers of a page that it protects. */
async function writeConfiguration(client: OauthClient, port: number): Promise<string> {
  // A server that root starts serves as another user.
  await chmod(folder, 0o755)
  await mkdir(join(folder, 'pages', 'private'), { recursive: true })
  await writeFile(join(folder, 'pages', 'private', 'index.html'), 'private\n')
  const names = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'dir', 'headers', 'auth_openidc']
  const lines = [
    `ServerRoot ${folder}`,
    `PidFile ${join(folder, 'apache.pid')}`,
    `ErrorLog ${join(folder, 'error.log')}`,
    `Listen 127.0.0.1:${port}`,
    'ServerName 127.0.0.1',
    ...names.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`),
    ...(process.getuid?.() === 0 ? ['User www-data', 'Group www-data'] : []),
    `DocumentRoot ${join(folder, 'pages')}`,
    'DirectoryIndex index.html',
    `OIDCProviderMetadataURL ${fixture.issuer}/.well-known/openid-configuration`,
    `OIDCClientID ${client.id}`,
    `OIDCClientSecret ${client.secret}`,
    `OIDCRedirectURI ${client.redirectUri}`,
    'OIDCCryptoPassphrase "a passphrase of the test"',
    'OIDCScope "openid email"',
    'OIDCPKCEMethod S256',
    'OIDCProviderTokenEndpointAuth client_secret_basic',
    'OIDCPassClaimsAs environment',
    '<Location /private>',
    '  AuthType openid-connect',
    '  Require valid-user',
    '  Header always set x-subject "%{OIDC_CLAIM_sub}e"',
    '  Header always set x-email "%{OIDC_CLAIM_email}e"',
    '</Location>',
  ]
  const path = join(folder, 'apache.conf')
  await writeFile(path, `${lines.join('\n')}\n`)
  return path
}

test('Apache with mod_auth_openidc opens a protected page to the user who signed in', async () => {
  const missing = NEEDED.filter((path) => !existsSync(path))
  if (missing.length > 0) {
    process.stdout.write(`mod_auth_openidc is not on this machine: ${missing.join(' and ')} not found\n`)
    expect(missing.every((path) => NEEDED.includes(path))).toBe(true)
    return
  }
  const port = await findFreePort()
  const origin = `http://127.0.0.1:${port}`
  const [user, client] = [
    await fixture.user(),
    await fixture.client({ redirect_uris: [`${origin}/private/callback`], scopes: ['openid', 'email'] }),
  ]
  const path = await writeConfiguration(client, port)
  await using apache = startProcess({ command: '/usr/sbin/apache2', args: ['-D', 'FOREGROUND', '-f', path] })
  await using stack = new AsyncDisposableStack()
  stack.defer(async () => {
    // The first process ends the others, which hold its output open.
    apache.signal('SIGTERM')
    await apache.ended
  })
  const describe = () => apache.stderr()
  await waitFor('Apache', () => fetch(`${origin}/`).then(Boolean, () => false), { describe })
  const browser = openBrowser()
  // Without this header the module takes the request for one of a script, and answers 401.
  const headers = { accept: 'text/html' }
  const start = await browser.visit(`${origin}/private/`, { headers })
  const readLog = () => readFile(join(folder, 'error.log'), 'utf8')
  expect(start.headers.location, `${start.status} ${await readLog()}`).toMatch(/^http/)
  const end = await fixture.walk(browser, start.headers.location ?? '', { user })
  const back = await browser.visit(end.location ?? '', { headers })
  expect(back.headers.location, `${back.status} ${await readLog()}`).toBe(`${origin}/private/`)
  const shown = await browser.visit(back.headers.location ?? '', { headers })
  expect([shown.status, shown.body]).toEqual([200, 'private\n'])
  expect(shown.headers['x-subject']).toBe(user.userId)
  expect(shown.headers['x-email']).toBe(user.email)
})
