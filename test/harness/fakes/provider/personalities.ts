import { createHmac, generateKeyPairSync } from 'node:crypto'
import type { FakeCall, FakeUser, Personality } from './fake-provider.ts'
import { readEs256 } from './signed-token.ts'

const SECRET = 'client-secret-of-tests'

/** The credentials of HTTP Basic, each part form-encoded (RFC 6749 section 2.3.1). */
const readBasic = ({ headers }: FakeCall) =>
  decodeURIComponent(Buffer.from(headers.authorization?.replace(/^Basic /, '') ?? '', 'base64').toString())

/** The client secret in the form, and nowhere else. */
const checkPosted =
  (id: string): Personality['checkClient'] =>
  ({ form, headers }) =>
    form.get('client_id') === id && form.get('client_secret') === SECRET && headers.authorization === undefined
      ? undefined
      : 'invalid_client'

const standardClaims = (iss: string) => (user: FakeUser) => ({
  iss,
  sub: user.sub,
  name: user.name,
  picture: user.picture,
  ...(user.email && { email: user.email, email_verified: user.isEmailVerified === true }),
})

function openId(input: {
  name: string
  origin: string
  issuer?: string
  issuerPath?: string
  personality?: Partial<Personality>
  document?: Record<string, unknown>
}): Personality {
  const { name, origin, issuer = origin, document } = input
  return {
    origins: [origin],
    clientId: `${name}-client`,
    clientSecret: SECRET,
    authorizePath: '/authorize',
    tokenPath: '/token',
    userinfoPath: '/userinfo',
    denial: 'access_denied',
    takesPkce: true,
    checkClient: checkPosted(`${name}-client`),
    buildClaims: standardClaims(issuer),
    ...input.personality,
    discovery: {
      path: `${input.issuerPath ?? new URL(issuer).pathname.replace(/\/$/, '')}/.well-known/openid-configuration`,
      build: ({ jwks, userinfo }) => ({
        issuer,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        jwks_uri: jwks,
        userinfo_endpoint: userinfo,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256'],
        token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic'],
        code_challenge_methods_supported: ['S256'],
        ...document,
      }),
    },
  }
}

/** Google: parameters of its own in the answer. */
const googlePersonality = openId({
  name: 'google',
  origin: 'https://accounts.google.com',
  personality: { answerParameters: { scope: 'email profile openid', authuser: '0', prompt: 'consent' } },
})

/** GitLab: the ID token has no address; the userinfo endpoint has it. */
const gitlabPersonality = openId({
  name: 'gitlab',
  origin: 'https://gitlab.com',
  personality: { buildClaims: ({ sub }) => ({ iss: 'https://gitlab.com', sub }) },
})

/** LinkedIn: refuses a code verifier, leaves the nonce out, and writes booleans as words. */
const linkedinPersonality = openId({
  name: 'linkedin',
  origin: 'https://www.linkedin.com',
  issuer: 'https://www.linkedin.com/oauth',
  document: {
    token_endpoint_auth_methods_supported: ['client_secret_post'],
    code_challenge_methods_supported: undefined,
  },
  personality: {
    takesPkce: false,
    hasNonce: false,
    denial: 'user_cancelled_login',
    buildClaims: (user) => ({
      ...standardClaims('https://www.linkedin.com/oauth')(user),
      ...(user.email && { email_verified: String(user.isEmailVerified === true) }),
    }),
  },
})

/** The tenant of Microsoft's fake users. */
export const TENANT = '4f1c2a9e-0000-4000-8000-00000000a001'

/** Microsoft: a template as issuer, the tenant in the token, no word about the address but `xms_edov`. */
const microsoftPersonality = openId({
  name: 'microsoft',
  origin: 'https://login.microsoftonline.com',
  issuerPath: '/common/v2.0',
  issuer: 'https://login.microsoftonline.com/{tenantid}/v2.0',
  document: { issuer: 'https://login.microsoftonline.com/{tenantid}/v2.0' },
  personality: {
    buildClaims: ({ sub, tid = TENANT, email, isEmailVerified, name }) => ({
      iss: `https://login.microsoftonline.com/${tid}/v2.0`,
      tid,
      sub,
      name,
      preferred_username: email ?? undefined,
      ...(email && { email, ...(isEmailVerified && { xms_edov: '1' }) }),
    }),
  },
})

const appleKey = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** The private key that Apple's fake registration signs with, as a `.p8` file in one line. */
export const APPLE_KEY = appleKey.privateKey
  .export({ type: 'pkcs8', format: 'pem' })
  .toString()
  .trim()
  .replaceAll('\n', '\\n')

/** Apple: posts its answer, takes a signed secret, names the user at the first sign-in only, has no userinfo. */
const applePersonality = openId({
  name: 'apple',
  origin: 'https://appleid.apple.com',
  document: { userinfo_endpoint: undefined, code_challenge_methods_supported: undefined },
  personality: {
    denial: 'user_cancelled_authorize',
    checkClient: ({ form }, now) => {
      const claims = readEs256(form.get('client_secret') ?? '', appleKey.publicKey)
      const seconds = now.getTime() / 1000
      const isValid =
        claims?.iss === 'TEAM000001' &&
        claims.sub === 'apple-client' &&
        claims.aud === 'https://appleid.apple.com' &&
        Number(claims.exp) > seconds &&
        Number(claims.exp) - seconds < 15_777_000
      return isValid && form.get('client_id') === 'apple-client' ? undefined : 'invalid_client'
    },
    buildClaims: ({ sub, email, isEmailVerified }) => ({
      iss: 'https://appleid.apple.com',
      sub,
      ...(email && { email, email_verified: String(isEmailVerified === true) }),
    }),
  },
})

/** An OpenID provider of a company: sends `iss` (RFC 9207), takes Basic only, and has the profile at userinfo. */
const companyPersonality = openId({
  name: 'company',
  origin: 'https://login.company.example',
  issuer: 'https://login.company.example/realms/staff',
  document: {
    authorization_response_iss_parameter_supported: true,
    token_endpoint_auth_methods_supported: ['client_secret_basic'],
  },
  personality: {
    answerParameters: { iss: 'https://login.company.example/realms/staff', session_state: 's-1' },
    checkClient: (call) =>
      readBasic(call) === `company-client:${SECRET}` && !call.form.has('client_secret') ? undefined : 'invalid_client',
    buildClaims: ({ sub }) => ({ iss: 'https://login.company.example/realms/staff', sub }),
  },
})

/** A plain OpenID provider that a browser and a service in a process of its own reach at its real origin. */
export function buildLocalPersonality(origin: string): Personality {
  return openId({ name: 'company', origin })
}

/** GitHub: a numeric id, a public address that proves nothing, and errors with status 200. */
const githubPersonality: Personality = {
  origins: ['https://github.com', 'https://api.github.com'],
  clientId: 'github-client',
  clientSecret: SECRET,
  authorizePath: '/login/oauth/authorize',
  tokenPath: '/login/oauth/access_token',
  denial: 'access_denied',
  takesPkce: true,
  checkClient: (call, now) =>
    // Without this header GitHub answers a form.
    call.headers.accept?.includes('json') ? checkPosted('github-client')(call, now) : 'not_json',
  refuseCode: {
    status: 200,
    body: { error: 'bad_verification_code', error_description: 'The code passed is incorrect.' },
  },
  api: {
    '/user': ({ sub, name, picture }, { headers }) =>
      headers['user-agent'] === undefined
        ? { status: 403, body: { message: 'User-Agent required' } }
        : {
            status: 200,
            body: {
              id: Number(sub.replace(/\D/g, '')),
              login: 'ada',
              name,
              avatar_url: picture,
              email: 'public@victim.example',
            },
          },
    '/user/emails': ({ email, isEmailVerified = false }) => ({
      status: 200,
      body: [
        { email: 'second@example.com', primary: false, verified: true, visibility: null },
        ...(email ? [{ email, primary: true, verified: isEmailVerified, visibility: 'private' }] : []),
      ],
    }),
  },
}

/** Discord: the id is a number written as text, the picture is a hash. */
const discordPersonality: Personality = {
  origins: ['https://discord.com'],
  clientId: 'discord-client',
  clientSecret: SECRET,
  authorizePath: '/oauth2/authorize',
  tokenPath: '/api/oauth2/token',
  denial: 'access_denied',
  takesPkce: true,
  checkClient: checkPosted('discord-client'),
  api: {
    '/api/users/@me': ({ sub, email = null, isEmailVerified = false, name }) => ({
      status: 200,
      body: { id: sub, username: 'ada', global_name: name, avatar: 'a1b2c3', email, verified: isEmailVerified },
    }),
  },
}

/** Facebook: wants a proof of the app secret at its API, and may leave the address out. */
const facebookPersonality: Personality = {
  origins: ['https://www.facebook.com', 'https://graph.facebook.com'],
  clientId: 'facebook-client',
  clientSecret: SECRET,
  authorizePath: '/v23.0/dialog/oauth',
  tokenPath: '/v23.0/oauth/access_token',
  denial: 'access_denied',
  takesPkce: true,
  checkClient: checkPosted('facebook-client'),
  api: {
    '/v23.0/me': ({ sub, email, name, picture }, { url, token }) => {
      const proof = createHmac('sha256', SECRET).update(token).digest('hex')
      if (url.searchParams.get('appsecret_proof') !== proof) return { status: 400, body: { error: { code: 100 } } }
      return { status: 200, body: { id: sub, name, ...(email && { email }), picture: { data: { url: picture } } } }
    },
  },
}

/** The personality of every provider that the tests know, by provider name. */
export const PERSONALITIES = {
  google: googlePersonality,
  microsoft: microsoftPersonality,
  apple: applePersonality,
  github: githubPersonality,
  facebook: facebookPersonality,
  linkedin: linkedinPersonality,
  gitlab: gitlabPersonality,
  discord: discordPersonality,
  company: companyPersonality,
} as const

export type PersonalityName = keyof typeof PERSONALITIES
