import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import type { Keyring } from '../../../base/keyring.ts'
import type { Random } from '../../../base/random.ts'
import { dev } from './provider/dev.ts'
import type { EnabledProvider } from './provider/provider-declaration.ts'
import { buildSampleClaims, type SampleUser } from './sample-user.ts'

/** The path of the provider's issuer. */
const ISSUER_PATH = '/auth/dev'

/** The path of the page with the sample users: the authorization endpoint. */
export const DEV_PAGE_PATH = `${ISSUER_PATH}/authorize`

const CLIENT_ID = 'signalbox'
const CODE_LIFETIME_MS = 60_000
const TOKEN_LIFETIME_SECONDS = 300
const KEY_ID = 'dev'
const CODE_CONTEXT = 'dev-provider-code'

/** The parameters of an authorization request that the provider keeps. */
export const REQUEST_PARAMETERS = [
  'client_id',
  'redirect_uri',
  'response_type',
  'scope',
  'state',
  'nonce',
  'code_challenge',
  'code_challenge_method',
] as const

/** An authorization request, by its parameters. */
export type DevRequest = Readonly<Partial<Record<(typeof REQUEST_PARAMETERS)[number], string>>>

interface DevCode {
  claims: Record<string, unknown>
  nonce: string
  challenge: string
  redirectUri: string
  expiresAtMs: number
}

/** A small OpenID provider inside the service, for development, used like any other but without the network. */
export interface DevProvider {
  enabled: EnabledProvider
  /** Whether a request is one that this service makes: the client, its callback, PKCE. */
  isRequestValid(request: DevRequest): boolean
  /** URL at which the browser continues when a sample user answers a valid request. */
  answer(request: DevRequest, user: SampleUser): string
}

interface DevProviderDeps {
  keyring: Pick<Keyring, 'seal' | 'open'>
  random: Random
  clock: Pick<Clock, 'now'>
  baseUrl: () => string
}

/** Builds the development provider. Its key is kept for the lifetime of the process. */
export function buildDevProvider(deps: DevProviderDeps): DevProvider {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const issuer = () => `${deps.baseUrl()}${ISSUER_PATH}`
  const spent = new Set<string>()
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: KEY_ID, alg: 'ES256', use: 'sig' }

  function redeem(form: URLSearchParams): Response {
    const text = form.get('code') ?? ''
    const code = spent.has(text) ? undefined : openCode(deps, text)
    spent.add(text)
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isValid = code && code.challenge === challenge && code.redirectUri === form.get('redirect_uri')
    if (!isValid) return Response.json({ error: 'invalid_grant' }, { status: 400 })
    const issuedAt = Math.floor(deps.clock.now() / 1000)
    const lifetime = { iat: issuedAt, exp: issuedAt + TOKEN_LIFETIME_SECONDS }
    const claims = { iss: issuer(), aud: CLIENT_ID, ...lifetime, nonce: code.nonce, ...code.claims }
    return Response.json({
      access_token: deps.random.bytes(32).toString('base64url'),
      token_type: 'Bearer',
      expires_in: TOKEN_LIFETIME_SECONDS,
      id_token: signIdToken(claims, privateKey),
    })
  }

  return {
    enabled: {
      name: 'dev',
      declaration: dev,
      client: { id: CLIENT_ID, secret: undefined },
      base: issuer,
      isEmailTrusted: true,
      answer: async (url, { body }) => {
        const path = new URL(url).pathname
        if (path.endsWith('/openid-configuration')) return Response.json(buildDiscovery(issuer()))
        if (path === `${ISSUER_PATH}/jwks`) return Response.json({ keys: [jwk] })
        if (path === `${ISSUER_PATH}/token`) return redeem(new URLSearchParams(body))
        return Response.json({}, { status: 404 })
      },
    },
    isRequestValid: (request) =>
      request.client_id === CLIENT_ID &&
      request.response_type === 'code' &&
      request.redirect_uri === `${deps.baseUrl()}/api/v3/auth/login/oauth/dev/callback` &&
      request.code_challenge_method === 'S256' &&
      [request.state, request.nonce, request.code_challenge].every((value) => value !== undefined && value !== ''),
    answer: (request, user) => {
      const location = new URL(request.redirect_uri ?? '')
      location.searchParams.set('state', request.state ?? '')
      location.searchParams.set('iss', issuer())
      if (user.id === 'denied') location.searchParams.set('error', 'access_denied')
      else location.searchParams.set('code', sealCode(deps, request, user))
      return location.href
    },
  }
}

function buildDiscovery(issuer: string): Record<string, unknown> {
  return {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['ES256'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
  }
}

function sealCode({ keyring, random, clock }: DevProviderDeps, request: DevRequest, user: SampleUser): string {
  const code: DevCode = {
    claims: buildSampleClaims(user, random.bytes(4).toString('hex')),
    nonce: request.nonce ?? '',
    challenge: request.code_challenge ?? '',
    redirectUri: request.redirect_uri ?? '',
    expiresAtMs: clock.now() + CODE_LIFETIME_MS,
  }
  return keyring.seal(JSON.stringify(code), CODE_CONTEXT)
}

function openCode({ keyring, clock }: DevProviderDeps, text: string): DevCode | undefined {
  try {
    const code = JSON.parse(keyring.open(text, CODE_CONTEXT)) as DevCode
    return code.expiresAtMs > clock.now() ? code : undefined
  } catch {
    return undefined
  }
}

function signIdToken(claims: object, key: KeyObject): string {
  const header = { alg: 'ES256', typ: 'JWT', kid: KEY_ID }
  const text = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}
