import { createHash } from 'node:crypto'
import Provider, { type KoaContextWithOIDC } from 'oidc-provider'
import type { Breakage, BreakSwitch } from './breakage.ts'

// biome-ignore lint/suspicious/noExplicitAny: internals of a library
type Any = any
type Anything = Record<string, Any>
type AnyFunction = (...args: Any[]) => Any

/** The library's own access to the configuration of a provider, which it does not export. */
const INTERNALS = new URL('../../node_modules/oidc-provider/lib/helpers/weak_cache.js', import.meta.url).href
const { default: readInternals } = (await import(INTERNALS)) as { default: (provider: Provider) => Anything }

/** The request that is being served. */
const readRequest = () => (Provider.ctx as KoaContextWithOIDC).oidc as unknown as Anything

const hash = (text: string) => createHash('sha256').update(text).digest('base64url')

/** Replaces `owner[name]` by what `wrap` makes of it. */
function replace(owner: Anything, name: string, wrap: (own: AnyFunction) => AnyFunction): void {
  const own = owner[name].bind(owner)
  owner[name] = wrap(own)
}

/** How each loose comparison of redirect URIs decides. */
const LOOSE_REDIRECTS: Partial<
  Record<Breakage, (given: URL, known: URL, texts: { given: string; known: string }) => boolean>
> = {
  'redirect URIs are compared by their beginning': (_given, _known, texts) => texts.given.startsWith(texts.known),
  'redirect URIs are compared by their host': (given, known) => given.hostname === known.hostname,
  'redirect URIs are compared by the end of their host': (given, known) => given.hostname.endsWith(known.hostname),
  'redirect URIs are compared by the beginning of their host': (_given, known, texts) =>
    texts.given.startsWith(`${known.protocol}//${known.hostname}`),
  'redirect URIs are compared after they are normalized': (given, known) => given.href === known.href,
  'every loopback redirect URI is accepted': (given) => ['127.0.0.1', 'localhost'].includes(given.hostname),
  'the port of every redirect URI is free': (given, known) =>
    given.hostname === known.hostname && given.pathname === known.pathname,
  'custom schemes are compared by their beginning': (given, known) =>
    known.protocol !== 'https:' && given.protocol.startsWith(known.protocol.slice(0, -1)),
}

function isLooselyAllowed(client: Anything, text: string, breakage: Breakage | undefined): boolean {
  const compare = breakage && LOOSE_REDIRECTS[breakage]
  const given = URL.parse(text)
  if (!compare || !given) return false
  return client.redirectUris.some((known: string) => compare(given, new URL(known), { given: text, known }))
}

/** Installs every breakage in a provider. None is on but the one that the switch names. */
export function makeBreakable(given: Provider, state: BreakSwitch): void {
  const provider = given as unknown as Anything
  const is = (breakage: Breakage) => state.on === breakage
  const { configuration } = readInternals(given)
  breakClients(provider, state, is)
  breakCodes(provider, is)
  breakTokens(provider, is)
  breakConfiguration(configuration, is)
  breakAnswers(given, is)
}

type Is = (breakage: Breakage) => boolean

function breakClients(provider: Anything, state: BreakSwitch, is: Is): void {
  const { prototype } = provider.Client
  const allowed = prototype.redirectUriAllowed
  prototype.redirectUriAllowed = function (this: Anything, text: string) {
    return allowed.call(this, text) || isLooselyAllowed(this, text, state.on)
  }
  const compare = prototype.compareClientSecret
  prototype.compareClientSecret = function (this: Anything, secret: string) {
    return is('secrets of clients are not compared') || compare.call(this, secret)
  }
  const opened = new WeakSet()
  replace(provider.Client, 'find', (own) => async (id: string) => {
    const client = await own(id)
    if (!client || opened.has(client)) return client
    opened.add(client)
    const { scope } = client
    Object.defineProperty(client, 'scope', { get: () => (is('clients may ask for every scope') ? undefined : scope) })
    return client
  })
}

function breakCodes(provider: Anything, is: Is): void {
  const codes = provider.AuthorizationCode
  replace(codes, 'find', (own) => async (value: string, options: object) => {
    const code = await own(value, options)
    const { client, params } = readRequest()
    if (!code) return code
    const { code_verifier: verifier, redirect_uri: uri } = params
    if (is('codes are good for every client')) code.clientId = client.clientId
    if (is('codes are good for every redirect URI')) code.redirectUri = uri
    if (is('codes are redeemed without a verifier') && verifier === undefined) delete code.codeChallenge
    if (is('the challenge is taken for the verifier') && verifier === code.codeChallenge)
      code.codeChallenge = hash(verifier)
    if (is('verifiers are not compared') && verifier !== undefined) code.codeChallenge = hash(verifier)
    if (is('codes can be redeemed again')) delete code.consumed
    return code
  })
  const consume = codes.prototype.consume
  codes.prototype.consume = async function () {
    if (!is('codes can be redeemed again')) await consume.call(this)
  }
  replace(provider.Grant, 'find', (own) => async (id: string, options: object) => {
    const grant = await own(id, options)
    const { client } = readRequest()
    const isFree = is('codes are good for every client') || is('refresh tokens are good for every client')
    if (grant && client && isFree) grant.clientId = client.clientId
    return grant
  })
  const pushed = provider.PushedAuthorizationRequest
  const consumePushed = pushed.prototype.consume
  pushed.prototype.consume = async function () {
    if (!is('pushed requests can be used again')) await consumePushed.call(this)
  }
}

function breakTokens(provider: Anything, is: Is): void {
  const { AccessToken: access, RefreshToken: refresh, Grant: grants } = provider
  replace(refresh, 'find', (own) => async (value: string, options: object) => {
    const token = await own(value, options)
    const { client } = readRequest()
    if (token && is('refresh tokens are good for every client')) token.clientId = client.clientId
    if (token && is('refresh tokens can be used again')) delete token.consumed
    return token
  })
  const consume = refresh.prototype.consume
  refresh.prototype.consume = async function () {
    if (!is('refresh tokens can be used again')) await consume.call(this)
  }
  replace(access, 'find', (own) => async (value: string, options: object) => {
    const found = await own(value, options)
    if (found) return found
    if (is('refresh tokens pass as access tokens')) return refresh.find(value)
    if (!is('signatures of access tokens are not checked')) return undefined
    const [, payload = ''] = value.split('.')
    const stored = await access.adapter.find(JSON.parse(Buffer.from(payload, 'base64url').toString()).jti)
    if (stored) delete stored.aud
    return stored && access.instantiate(stored)
  })
  for (const model of [access, refresh, provider.AuthorizationCode])
    replace(
      model,
      'revokeByGrantId',
      (own) => async (id: string) => void (is('families of tokens never end') || (await own(id))),
    )
  replace(
    grants.adapter,
    'destroy',
    (own) => async (id: string) => void (is('families of tokens never end') || (await own(id))),
  )
  const destroy = refresh.prototype.destroy
  refresh.prototype.destroy = async function () {
    if (!is('families of tokens never end')) await destroy.call(this)
  }
}

function breakConfiguration(configuration: Anything, is: Is): void {
  const { features, pkce } = configuration
  replace(
    pkce,
    'required',
    (own) =>
      (...args) =>
        !is('PKCE is optional') && own(...args),
  )
  replace(
    configuration,
    'clientBasedCORS',
    (own) =>
      (...args) =>
        is('every origin reads tokens') || own(...args),
  )
  for (const name of ['introspection', 'revocation'])
    replace(
      features[name],
      'allowedPolicy',
      (own) =>
        async (...args) =>
          is('clients reach tokens of others') || own(...args),
    )
  replace(features.resourceIndicators, 'getResourceServerInfo', (own) => async (ctx, resource, client) => {
    const isFree = is('tokens are issued for every API')
    return own(ctx, isFree ? await features.resourceIndicators.defaultResource(ctx) : resource, client)
  })
  replace(configuration, 'renderError', (own) => async (ctx, ...rest) => {
    if (!is('errors show the request as it is')) return own(ctx, ...rest)
    ctx.type = 'html'
    ctx.body = decodeURIComponent(String(ctx.req.url).replaceAll('+', ' '))
  })
}

/** The members that each breakage leaves out of the answer at a redirect URI. */
const LOST_MEMBERS = { 'answers have no iss': 'iss', 'answers have no state': 'state' } as const

function breakAnswers(provider: Provider, is: Is): void {
  provider.use(async (given, next) => {
    const ctx = given as KoaContextWithOIDC
    const original = (ctx.req as Anything).originalHeaders
    if (is('the host of a request is believed'))
      ctx.req.headers['x-forwarded-host'] = original['x-forwarded-host'] ?? original.host
    await next()
    const location = ctx.response.get('location')
    for (const [breakage, name] of Object.entries(LOST_MEMBERS)) {
      if (!is(breakage as Breakage) || !location.includes('?')) continue
      const url = new URL(location, 'http://service.example')
      url.searchParams.delete(name)
      ctx.set('location', url.href)
    }
  })
  const { Session: sessions } = provider as unknown as Anything
  replace(sessions, 'get', (own) => async (ctx) => {
    const session = await own(ctx)
    if (is('forms of the provider have no token') && session.state?.secret) session.state.secret = 'guess'
    return session
  })
}
