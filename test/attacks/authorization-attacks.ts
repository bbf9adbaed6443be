import type { Visited } from '../harness/browser/visitor.ts'
import { type AttackFixture, WEB } from './attack-fixture.ts'
import type { AttackCase, Breakage } from './breakage.ts'

type Case = AttackCase<AttackFixture>

/** Whether an answer leaves the service with a code. */
const hasCode = ({ headers }: Visited) => /[?&]code=/.test(headers.location ?? '')

/** Whether an answer leads on: to the client with a code, or to a page of the service that asks the user. */
const leadsOn = (answer: Visited) => hasCode(answer) || /^\/auth\/oauth\?id=/.test(answer.headers.location ?? '')

/** The redirect URIs that an attacker gives, by the comparison that would accept them. */
const REDIRECTS: Partial<Record<Breakage, readonly [name: string, uri: string][]>> = {
  'redirect URIs are compared by their beginning': [
    ['with a slash at the end', `${WEB}/`],
    ['with a longer path', `${WEB}/evil`],
    ['with a query', `${WEB}?next=https://evil.example`],
    ['with a longer last segment', `${WEB}.evil`],
    ['with a path parameter', `${WEB};evil`],
  ],
  'redirect URIs are compared by their host': [
    ['with another path', 'https://app.example.com/other'],
    ['with another port', 'https://app.example.com:8443/callback'],
    ['without TLS', 'http://app.example.com/callback'],
    ['that is the sign-out of the app', 'https://app.example.com/auth/sign-out'],
    ['that is an open redirect of the app', 'https://app.example.com/go?to=https://evil.example'],
  ],
  'redirect URIs are compared by the end of their host': [
    ['on a subdomain', 'https://evil.app.example.com/callback'],
    ['on a host that ends the same', 'https://evilapp.example.com/callback'],
  ],
  'redirect URIs are compared by the beginning of their host': [
    ['on a host that begins the same', 'https://app.example.com.evil.example/callback'],
    ['with the registered host as user name', 'https://app.example.com@evil.example/callback'],
    ['with the registered host as user name and password', 'https://app.example.com:443@evil.example/callback'],
  ],
  'redirect URIs are compared after they are normalized': [
    ['with an explicit port', 'https://app.example.com:443/callback'],
    ['with the host in capitals', 'https://APP.example.com/callback'],
    ['with dot segments', 'https://app.example.com/x/../callback'],
    ['with encoded dot segments', 'https://app.example.com/%2e%2e/callback'],
    ['with the scheme in capitals', 'HTTPS://app.example.com/callback'],
  ],
  'every loopback redirect URI is accepted': [
    ['on the loopback of a web client', 'http://127.0.0.1:4711/callback'],
    ['on localhost of a web client', 'http://localhost:4711/callback'],
  ],
}

/** The same for a native client. */
const NATIVE_REDIRECTS: typeof REDIRECTS = {
  'redirect URIs are compared by their host': [
    ['on the loopback with another path', 'http://127.0.0.1:50000/evil'],
    ['on the loopback with a user name', 'http://evil@127.0.0.1:50000/callback'],
  ],
  'every loopback redirect URI is accepted': [
    ['on the loopback by name, where the address is registered', 'http://localhost:50000/callback'],
  ],
  'redirect URIs are compared by the beginning of their host': [
    ['on a host that begins like the loopback', 'http://127.0.0.1.evil.example:50000/callback'],
  ],
  'the port of every redirect URI is free': [['on https with another port', 'https://app.example.com:8443/native']],
  'custom schemes are compared by their beginning': [
    ['with the custom scheme of another app', 'com.example.app2:/callback'],
    ['with the custom scheme and another path', 'com.example.app:/evil'],
  ],
}

function listRedirects(table: typeof REDIRECTS, kind: 'flow' | 'native'): Case[] {
  return Object.entries(table).flatMap(([brokenBy, list]) =>
    list.map(([name, uri]) => ({
      name: `a redirect URI ${kind === 'native' ? 'of a native client ' : ''}${name} gets an answer`,
      brokenBy: brokenBy as Breakage,
      attack: async (fixture: AttackFixture) =>
        leadsOn(await fixture.ask({ redirect_uri: uri }, { flow: fixture[kind] })),
    })),
  )
}

const PKCE: Case[] = [
  {
    name: 'a challenge is left out',
    brokenBy: 'PKCE is optional',
    attack: async ({ ask }) => hasCode(await ask({ code_challenge: undefined, code_challenge_method: undefined })),
  },
  ...(['plain', undefined, 's256', 'none'] as const).map((method) => ({
    name: `the PKCE method is ${method ?? 'left out'}`,
    brokenBy: 'PKCE methods are all taken for S256' as const,
    attack: async ({ ask }: AttackFixture) => hasCode(await ask({ code_challenge_method: method })),
  })),
]

/** Second values that are valid by themselves. */
const SECOND_VALUES = {
  redirect_uri: WEB,
  scope: 'openid',
  state: 'evil',
  response_type: 'code',
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  nonce: 'evil',
}

const POLLUTION: Case[] = Object.entries(SECOND_VALUES).map(([name, value]) => ({
  name: `${name} is sent twice`,
  brokenBy: 'the last of several values counts',
  attack: async ({ ask }) => hasCode(await ask({ [name]: value }, { extra: `&${name}=${encodeURIComponent(value)}` })),
}))

const SCRIPT = '<script>alert(1)</script>'

const REFLECTION: Case[] = ['client_id', 'redirect_uri', 'scope', 'state', 'prompt', 'response_type', 'ui_locales'].map(
  (name) => ({
    name: `${name} is a part of the markup of the error page`,
    brokenBy: 'errors show the request as it is',
    attack: async ({ ask }) =>
      (await ask({ redirect_uri: 'https://evil.example', [name]: SCRIPT })).body.includes(SCRIPT),
  }),
)

const RIGHTS: Case[] = [
  {
    name: 'a client asks for a scope that it may not ask for',
    brokenBy: 'clients may ask for every scope',
    attack: async ({ ask }) => leadsOn(await ask({ scope: 'openid webhook:write' })),
  },
  {
    name: 'a client asks for a token for the API of somebody else',
    brokenBy: 'tokens are issued for every API',
    attack: async ({ ask }) => leadsOn(await ask({ resource: 'https://evil.example/api' })),
  },
  {
    name: 'a pushed request is used a second time',
    brokenBy: 'pushed requests can be used again',
    attack: async ({ flow, browser }) => {
      const { url } = await flow.prepare({ scope: 'openid email', isPushed: true })
      await browser.visit(url)
      return hasCode(await browser.visit(url))
    },
  },
]

const readAnswer = ({ headers }: Visited) => URL.parse(headers.location ?? '')?.searchParams

/** Attacks by answers that a client cannot tell from those of another server or another request. */
const MIX_UP: Case[] = [
  ...(['code', 'error'] as const).flatMap((kind) => {
    const change = kind === 'code' ? {} : { response_type: 'token' }
    const lacks = async ({ ask }: AttackFixture, name: string) => {
      const answer = readAnswer(await ask({ ...change, response_mode: 'query' }))
      return answer?.has(kind) === true && !answer.has(name)
    }
    return [
      {
        name: `an answer with ${kind} does not say who sent it`,
        brokenBy: 'answers have no iss' as const,
        attack: (fixture: AttackFixture) => lacks(fixture, 'iss'),
      },
      {
        name: `an answer with ${kind} does not say to which request it belongs`,
        brokenBy: 'answers have no state' as const,
        attack: (fixture: AttackFixture) => lacks(fixture, 'state'),
      },
    ]
  }),
  ...['host', 'x-forwarded-host'].map((name) => ({
    name: `the header ${name} changes the addresses of the metadata`,
    brokenBy: 'the host of a request is believed' as const,
    attack: async ({ fixture, browser }: AttackFixture) => {
      const answer = await browser.visit(`${fixture.issuer}/.well-known/openid-configuration`, {
        headers: { [name]: 'evil.example' },
      })
      return answer.body.includes('evil.example')
    },
  })),
]

/** Attacks on the authorization endpoint. */
export const AUTHORIZATION_ATTACKS: readonly Case[] = [
  ...listRedirects(REDIRECTS, 'flow'),
  ...listRedirects(NATIVE_REDIRECTS, 'native'),
  ...PKCE,
  ...POLLUTION,
  ...REFLECTION,
  ...RIGHTS,
  ...MIX_UP,
]
