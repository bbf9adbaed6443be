import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { UserId } from '../../../src/base/id.ts'

/** A key pair of the issuer, with its public part as a JWK. */
export interface IssuerKey {
  privateKey: KeyObject
  jwk: Record<string, unknown>
}

/** Makes an ES256 key. */
export function makeKey(kid: string, curve = 'P-256'): IssuerKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: curve })
  return { privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' } }
}

/** An issuer of access tokens: an HTTP server with its keys. */
export interface TestIssuer extends AsyncDisposable {
  /** Its address, without a trailing slash. */
  url: string
  key: IssuerKey
  /** Keys of the key set. */
  published: Record<string, unknown>[]
  /** How often the key set was read. */
  reads: number
  /** Answer of the key set in place of its keys. */
  fault: 'down' | 'no json' | 'no set' | undefined
  /** Holds answers back until it resolves. */
  gate: Promise<void> | undefined
  /** Reads the key set over HTTP. */
  load: () => Promise<unknown>
}

/** Starts the issuer on a port of its own. */
export async function startTestIssuer(): Promise<TestIssuer> {
  const key = makeKey('key-1')
  const server = createServer(async (_request, response) => {
    issuer.reads += 1
    await issuer.gate
    if (issuer.fault === 'down') return void response.writeHead(503).end()
    response.writeHead(200, { 'content-type': 'application/json' })
    const body = issuer.fault === 'no set' ? { jwks: [] } : { keys: issuer.published }
    response.end(issuer.fault === 'no json' ? '<html>' : JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer: TestIssuer = {
    url,
    key,
    published: [key.jwk],
    reads: 0,
    fault: undefined,
    gate: undefined,
    load: async () => {
      const answer = await fetch(`${url}/jwks`)
      if (!answer.ok) throw new Error(`the keys answered ${answer.status}`)
      return answer.json()
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return issuer
}

const encode = (part: unknown) =>
  Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url')

/** Signs a header and claims under ES256, or as the header says for forgeries. A text is signed as it is. */
export function signParts(header: object | string, claims: object | string, key: IssuerKey): string {
  const text = `${encode(header)}.${encode(claims)}`
  const { alg } = typeof header === 'string' ? { alg: 'ES256' } : (header as { alg?: string })
  if (alg === 'none') return `${text}.`
  if (alg?.startsWith('HS')) {
    const secret = JSON.stringify(key.jwk)
    return `${text}.${createHmac(alg.replace('HS', 'sha'), secret).update(text).digest('base64url')}`
  }
  const bytes = sign('sha256', Buffer.from(text), { key: key.privateKey, dsaEncoding: 'ieee-p1363' })
  return `${text}.${bytes.toString('base64url')}`
}

/** The header of an access token of the own provider. */
export const headOf = ({ jwk }: IssuerKey) => ({ alg: 'ES256', typ: 'at+jwt', kid: jwk.kid })

let tokens = 0

/** The claims of an access token for the API, as the own provider issues it at `seconds`. */
export function accessClaims(facts: {
  baseUrl: string
  userId: UserId
  seconds: number
  scope?: string
}): Record<string, unknown> {
  tokens += 1
  return {
    iss: `${facts.baseUrl}/api/v3/oauth`,
    aud: `${facts.baseUrl}/api/v3`,
    sub: facts.userId,
    client_id: 'client-of-a-test',
    scope: facts.scope ?? 'openid contract:read',
    grant_id: `grant-${tokens}`,
    jti: `token-${tokens}`,
    iat: facts.seconds,
    exp: facts.seconds + 900,
  }
}
