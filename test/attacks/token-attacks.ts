import { createHash } from 'node:crypto'
import { generateKeyPair, SignJWT } from 'jose'
import { type AttackFixture, type Posted, redeemForm, refreshForm } from './attack-fixture.ts'
import type { AttackCase } from './breakage.ts'

type Case = AttackCase<AttackFixture>

const hasTokens = ({ status, body }: Posted) => status === 200 && typeof body.access_token === 'string'

const CODES: Case[] = [
  {
    name: 'a code is redeemed by another client',
    brokenBy: 'codes are good for every client',
    attack: async ({ begin, post, other }) => hasTokens(await post('/token', redeemForm(await begin()), { as: other })),
  },
  {
    name: 'a code is redeemed without its verifier',
    brokenBy: 'codes are redeemed without a verifier',
    attack: async ({ begin, post }) => {
      const { code_verifier: _left, ...form } = redeemForm(await begin())
      return hasTokens(await post('/token', form))
    },
  },
  {
    name: 'a code is redeemed with its challenge',
    brokenBy: 'the challenge is taken for the verifier',
    attack: async ({ begin, post }) => {
      const begun = await begin()
      const challenge = createHash('sha256').update(begun.verifier).digest('base64url')
      return hasTokens(await post('/token', redeemForm(begun, { code_verifier: challenge })))
    },
  },
  {
    name: 'a code is injected into another authorization of the same client',
    brokenBy: 'verifiers are not compared',
    attack: async ({ begin, post }) => {
      const [stolen, own] = [await begin(), await begin()]
      return hasTokens(await post('/token', redeemForm(stolen, { code_verifier: own.verifier })))
    },
  },
  {
    name: 'a code is redeemed with another redirect URI',
    brokenBy: 'codes are good for every redirect URI',
    attack: async ({ begin, post }) =>
      hasTokens(await post('/token', redeemForm(await begin(), { redirect_uri: 'https://evil.example/' }))),
  },
  {
    name: 'a code is redeemed a second time',
    brokenBy: 'codes can be redeemed again',
    attack: async ({ begin, post }) => {
      const form = redeemForm(await begin())
      await post('/token', form)
      return hasTokens(await post('/token', form))
    },
  },
  {
    name: 'the tokens of a code that was used twice stay valid',
    brokenBy: 'families of tokens never end',
    attack: async ({ begin, post, flow }) => {
      const form = redeemForm(await begin())
      const { body } = await post('/token', form)
      await post('/token', form)
      return (await flow.introspect(String(body.access_token))).active === true
    },
  },
]

const REFRESH: Case[] = [
  {
    name: 'a refresh token is used by another client',
    brokenBy: 'refresh tokens are good for every client',
    attack: async ({ signIn, post, other }) =>
      hasTokens(await post('/token', refreshForm((await signIn()).refresh_token), { as: other })),
  },
  {
    name: 'a refresh token is used a second time',
    brokenBy: 'refresh tokens can be used again',
    attack: async ({ signIn, post }) => {
      const form = refreshForm((await signIn()).refresh_token)
      await post('/token', form)
      return hasTokens(await post('/token', form))
    },
  },
  {
    name: 'the successor of a refresh token that was used twice stays valid',
    brokenBy: 'families of tokens never end',
    attack: async ({ signIn, post }) => {
      const form = refreshForm((await signIn()).refresh_token)
      const { body } = await post('/token', form)
      await post('/token', form)
      return hasTokens(await post('/token', refreshForm(String(body.refresh_token))))
    },
  },
  {
    name: 'a refresh token that was revoked is used',
    brokenBy: 'families of tokens never end',
    attack: async ({ signIn, post, flow }) => {
      const { refresh_token: token } = await signIn()
      await flow.revoke(token)
      return hasTokens(await post('/token', refreshForm(token)))
    },
  },
]

/** A token with the claims of a good one, under no key or a key of the attacker. */
async function forge(token: string, kind: 'unsigned' | 'signed by the attacker' | 'cut'): Promise<string> {
  const [, payload = ''] = token.split('.')
  if (kind === 'unsigned') return `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')}.${payload}.`
  if (kind === 'cut') return token.split('.').slice(0, 2).concat('AAAA').join('.')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
  return new SignJWT({ ...claims, scope: 'openid webhook:write' })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'evil' })
    .sign((await generateKeyPair('ES256')).privateKey)
}

const TOKENS: Case[] = [
  ...(['unsigned', 'signed by the attacker', 'cut'] as const).flatMap((kind): Case[] => [
    {
      name: `an access token that is ${kind} opens userinfo`,
      brokenBy: 'signatures of access tokens are not checked',
      attack: async ({ signIn, flow }) =>
        (await flow.userinfo(await forge((await signIn()).access_token, kind))).status === 200,
    },
    {
      name: `an access token that is ${kind} is active to introspection`,
      brokenBy: 'signatures of access tokens are not checked',
      attack: async ({ signIn, flow }) =>
        (await flow.introspect(await forge((await signIn()).access_token, kind))).active === true,
    },
  ]),
  {
    name: 'a refresh token opens userinfo',
    brokenBy: 'refresh tokens pass as access tokens',
    attack: async ({ signIn, flow }) => (await flow.userinfo((await signIn()).refresh_token)).status === 200,
  },
  ...(['access_token', 'refresh_token'] as const).flatMap((name): Case[] => [
    {
      name: `another client introspects an ${name}`,
      brokenBy: 'clients reach tokens of others',
      attack: async ({ signIn, otherFlow }) => (await otherFlow.introspect((await signIn())[name])).active === true,
    },
    {
      name: `another client revokes an ${name}`,
      brokenBy: 'clients reach tokens of others',
      attack: async ({ signIn, otherFlow, flow }) => {
        const token = (await signIn())[name]
        await otherFlow.revoke(token).catch(() => {})
        return (await flow.introspect(token)).active === false
      },
    },
  ]),
]

const CLIENTS: Case[] = [
  ['with a wrong secret', () => 'sbcs_wrong'],
  ['with the secret of another client', ({ other }: AttackFixture) => other.secret ?? ''],
  ['with its id as secret', ({ client }: AttackFixture) => client.id],
].map(([name, secret]) => ({
  name: `a client authenticates ${name}`,
  brokenBy: 'secrets of clients are not compared',
  attack: async (fixture) => {
    const options = { secret: (secret as (fixture: AttackFixture) => string)(fixture) }
    return hasTokens(await fixture.post('/token', redeemForm(await fixture.begin()), options))
  },
}))

const ENDPOINT: Case[] = [
  ...(['grant_type', 'code', 'redirect_uri', 'code_verifier'] as const).map(
    (name): Case => ({
      name: `${name} is posted twice`,
      brokenBy: 'the last of several values counts',
      attack: async ({ begin, post }) => {
        const form = redeemForm(await begin())
        const body = `${new URLSearchParams({ ...form, [name]: 'evil' })}&${new URLSearchParams({ [name]: form[name] ?? '' })}`
        return hasTokens(await post('/token', body))
      },
    }),
  ),
  {
    name: 'the scripts of another origin read tokens',
    brokenBy: 'every origin reads tokens',
    attack: async ({ begin, post }) => {
      const answer = await post('/token', redeemForm(await begin()), { headers: { origin: 'https://evil.example' } })
      return answer.headers.get('access-control-allow-origin') !== null
    },
  },
  {
    name: 'an answer with tokens may be stored by a cache',
    brokenBy: 'answers are cached',
    attack: async ({ begin, post }) =>
      (await post('/token', redeemForm(await begin()))).headers.get('cache-control') !== 'no-store',
  },
]

/** Attacks on codes, tokens and the authentication of clients. */
export const TOKEN_ATTACKS: readonly Case[] = [...CODES, ...REFRESH, ...TOKENS, ...CLIENTS, ...ENDPOINT]
