import type { Schemas } from '@signalbox/client'

/** The members of an app that its snippets depend on. */
export type SnippetApp = Pick<
  Schemas['OauthClient'],
  | 'client_id'
  | 'type'
  | 'redirect_uris'
  | 'scopes'
  | 'token_endpoint_auth_method'
  | 'id_token_signed_response_alg'
  | 'dpop_bound_access_tokens'
  | 'require_pushed_authorization_requests'
>

interface Facts {
  origin: string
  id: string
  isPublic: boolean
  redirect: string
  scope: string
  alg: string
}

/** A text as a string of JavaScript, and of Python. */
const quote = (text: string) => JSON.stringify(text)

/** A text as one word of a shell. */
const shellQuote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

const authorizeUrl = ({ origin, id, redirect, scope }: Facts, challenge: string) => {
  const query = new URLSearchParams({ response_type: 'code', client_id: id, redirect_uri: redirect, scope })
  return `${origin}/api/v3/oauth/authorize?${query}&state=STATE&code_challenge=${challenge}&code_challenge_method=S256`
}

function buildOpenidClient(facts: Facts, app: SnippetApp): string {
  const { origin, id, redirect, scope } = facts
  const proof =
    app.token_endpoint_auth_method === 'private_key_jwt'
      ? ', undefined, client.PrivateKeyJwt(key)'
      : facts.isPublic
        ? ''
        : ', process.env.SIGNALBOX_CLIENT_SECRET'
  const build = app.require_pushed_authorization_requests
    ? 'await client.buildAuthorizationUrlWithPAR'
    : 'client.buildAuthorizationUrl'
  return [
    "import * as client from 'openid-client'",
    '',
    `const config = await client.discovery(new URL(${quote(origin)}), ${quote(id)}${proof})`,
    'const verifier = client.randomPKCECodeVerifier()',
    `const url = ${build}(config, {`,
    `  redirect_uri: ${quote(redirect)},`,
    `  scope: ${quote(scope)},`,
    '  code_challenge: await client.calculatePKCECodeChallenge(verifier),',
    "  code_challenge_method: 'S256',",
    '})',
  ].join('\n')
}

function buildUrls(facts: Facts): string {
  return [
    authorizeUrl(facts, 'CHALLENGE'),
    `${facts.redirect}?code=CODE&state=STATE&iss=${encodeURIComponent(facts.origin)}`,
    `POST ${facts.origin}/api/v3/oauth/token`,
    `GET ${facts.origin}/api/v3/oauth/userinfo`,
  ].join('\n')
}

function buildCurl(facts: Facts): string {
  const { origin, id, isPublic, redirect } = facts
  return [
    `verifier=$(openssl rand -base64 48 | tr '+/' '-_' | tr -d '=\\n')`,
    `challenge=$(printf %s "$verifier" | openssl dgst -sha256 -binary | openssl base64 | tr '+/' '-_' | tr -d '=\\n')`,
    `echo ${shellQuote(authorizeUrl(facts, ''))} | sed "s/code_challenge=/code_challenge=$challenge/"`,
    '# Open the address in a browser, sign in, and enter the code that the redirect URI gets.',
    'read -r code',
    `curl ${shellQuote(`${origin}/api/v3/oauth/token`)} \\`,
    isPublic
      ? `  --data-urlencode ${shellQuote(`client_id=${id}`)} \\`
      : `  --user "${id}:$SIGNALBOX_CLIENT_SECRET" \\`,
    '  --data-urlencode grant_type=authorization_code \\',
    '  --data-urlencode "code=$code" \\',
    `  --data-urlencode ${shellQuote(`redirect_uri=${redirect}`)} \\`,
    '  --data-urlencode "code_verifier=$verifier"',
  ].join('\n')
}

function buildAuthJs({ origin, id, isPublic, scope, alg }: Facts): string {
  return [
    "import NextAuth from 'next-auth'",
    '',
    '// Its redirect URI ends with /api/auth/callback/signalbox.',
    'export const { handlers, auth, signIn, signOut } = NextAuth({',
    '  providers: [',
    '    {',
    "      id: 'signalbox',",
    "      name: 'Signalbox',",
    "      type: 'oidc',",
    `      issuer: ${quote(origin)},`,
    `      clientId: ${quote(id)},`,
    ...(isPublic ? [] : ['      clientSecret: process.env.SIGNALBOX_CLIENT_SECRET,']),
    `      authorization: { params: { scope: ${quote(scope)} } },`,
    "      checks: ['pkce', 'state'],",
    `      client: { id_token_signed_response_alg: '${alg}'${isPublic ? ", token_endpoint_auth_method: 'none'" : ''} },`,
    '    },',
    '  ],',
    '})',
  ].join('\n')
}

function buildAuthlib({ origin, id, isPublic, redirect, scope }: Facts): string {
  return [
    'import os',
    '',
    'from authlib.integrations.flask_client import OAuth',
    'from flask import Flask, redirect, session',
    '',
    'app = Flask(__name__)',
    "app.secret_key = os.environ['FLASK_SECRET_KEY']",
    'oauth = OAuth(app)',
    'oauth.register(',
    "    'signalbox',",
    `    client_id=${quote(id)},`,
    ...(isPublic ? [] : ["    client_secret=os.environ['SIGNALBOX_CLIENT_SECRET'],"]),
    `    server_metadata_url=${quote(`${origin}/.well-known/openid-configuration`)},`,
    '    client_kwargs={',
    `        'scope': ${quote(scope)},`,
    "        'code_challenge_method': 'S256',",
    ...(isPublic ? ["        'token_endpoint_auth_method': 'none',"] : []),
    '    },',
    ')',
    '',
    '',
    "@app.route('/sign-in')",
    'def sign_in():',
    `    return oauth.signalbox.authorize_redirect(${quote(redirect)})`,
    '',
    '',
    `@app.route(${quote(URL.parse(redirect)?.pathname ?? '/callback')})`,
    'def callback():',
    '    token = oauth.signalbox.authorize_access_token()',
    "    session['user'] = token['userinfo']",
    "    return redirect('/')",
  ].join('\n')
}

/**
 * The start of a sign-in with an app, by the library or the tool that is used. Those that cannot prove the app as it has to, or
 * that want an ID token it may not ask for, are left out. Pure.
 */
export function buildSnippets(app: SnippetApp, origin: string): { name: string; text: string }[] {
  const facts: Facts = {
    origin,
    id: app.client_id,
    isPublic: app.type === 'public',
    redirect: app.redirect_uris[0] ?? 'http://127.0.0.1:4711/callback',
    scope: app.scopes.join(' '),
    alg: app.id_token_signed_response_alg,
  }
  const isPlain =
    app.token_endpoint_auth_method !== 'private_key_jwt' &&
    !app.dpop_bound_access_tokens &&
    !app.require_pushed_authorization_requests
  const isOidc = app.scopes.includes('openid')
  return [
    { name: 'openid-client', text: buildOpenidClient(facts, app) },
    ...(isPlain && isOidc ? [{ name: 'Auth.js', text: buildAuthJs(facts) }] : []),
    ...(isPlain && isOidc ? [{ name: 'Authlib', text: buildAuthlib(facts) }] : []),
    ...(isPlain ? [{ name: 'curl', text: buildCurl(facts) }] : []),
    ...(isPlain ? [{ name: 'URLs', text: buildUrls(facts) }] : []),
  ]
}
