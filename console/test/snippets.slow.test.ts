import { spawnSync } from 'node:child_process'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { buildSnippets, type SnippetApp } from '../src/screens/apps/snippets.ts'

const ORIGIN = 'https://signalbox.example'

const APP: SnippetApp = {
  client_id: '0198a2b4-0000-7000-8000-000000000001',
  type: 'confidential',
  // A quote is allowed in a path.
  redirect_uris: ["https://app.example.com/o'neill/callback"],
  scopes: ['openid', 'profile'],
  token_endpoint_auth_method: 'client_secret_basic',
  id_token_signed_response_alg: 'ES256',
  dpop_bound_access_tokens: false,
  require_pushed_authorization_requests: false,
}

const namesOf = (change: Partial<SnippetApp>) => buildSnippets({ ...APP, ...change }, ORIGIN).map(({ name }) => name)

describe.each([
  ['a confidential app', APP],
  ['a public app', { ...APP, type: 'public', token_endpoint_auth_method: 'none' }],
] as [string, SnippetApp][])('the snippets of %s', (_name, app) => {
  const snippets = buildSnippets(app, ORIGIN)
  const textOf = (name: string) => snippets.find((snippet) => snippet.name === name)?.text ?? ''

  test.each(['openid-client', 'Auth.js'])('%s is a module of JavaScript', (name) => {
    const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }
    const { diagnostics } = ts.transpileModule(textOf(name), { reportDiagnostics: true, compilerOptions: options })
    expect(diagnostics).toEqual([])
    expect(textOf(name)).toContain(app.client_id)
  })

  test('Authlib is Python', () => {
    const check = 'import ast, sys; ast.parse(sys.stdin.read())'
    const { status, error } = spawnSync('python3', ['-c', check], { input: textOf('Authlib'), encoding: 'utf8' })
    expect(error ? (error as NodeJS.ErrnoException).code : status).toBe(error ? 'ENOENT' : 0)
    expect(textOf('Authlib')).toContain('@app.route("/o\'neill/callback")')
  })

  test('curl is a script of the shell', () => {
    const { status, stderr } = spawnSync('sh', ['-n'], { input: textOf('curl'), encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
    expect(textOf('curl').includes('SIGNALBOX_CLIENT_SECRET')).toBe(app.type === 'confidential')
  })

  test('the URL of the authorization names the app, its redirect and PKCE', () => {
    const { searchParams } = new URL(textOf('URLs').split('\n')[0] ?? '')
    expect(Object.fromEntries(searchParams)).toEqual({
      response_type: 'code',
      client_id: app.client_id,
      redirect_uri: "https://app.example.com/o'neill/callback",
      scope: 'openid profile',
      state: 'STATE',
      code_challenge: 'CHALLENGE',
      code_challenge_method: 'S256',
    })
  })
})

test('an app has the snippets that can prove it and ask for what it may', () => {
  expect(namesOf({})).toEqual(['openid-client', 'Auth.js', 'Authlib', 'curl', 'URLs'])
  expect(namesOf({ scopes: ['profile'] })).toEqual(['openid-client', 'curl', 'URLs'])
  expect(namesOf({ token_endpoint_auth_method: 'private_key_jwt' })).toEqual(['openid-client'])
  expect(namesOf({ require_pushed_authorization_requests: true })).toEqual(['openid-client'])
})
