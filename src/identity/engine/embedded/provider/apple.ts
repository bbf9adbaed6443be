import { createPrivateKey, sign } from 'node:crypto'
import type { ClientAuth } from 'openid-client'
import type { Clock } from '../../../../base/clock.ts'
import { type ProviderClient, type ProviderDeclaration, readStandardClaims } from './provider-declaration.ts'

/** Lifetime of a signed client secret, in seconds. Apple accepts up to six months; one is signed for each exchange. */
const SECRET_SECONDS = 300

/** Apple, by OpenID Connect. It posts its answer, with the name at the first sign-in; its secret is a signed JWT. */
export const apple: ProviderDeclaration = {
  label: 'Apple',
  protocol: { kind: 'openid', issuer: 'https://appleid.apple.com' },
  scope: 'openid email name',
  parameters: { response_mode: 'form_post' },
  needs: ['secret', 'teamId', 'keyId'],
  buildClientAuth: signEachSecret,
  // The ID token has no name; the posted one is added by the engine.
  readProfile: readStandardClaims,
}

function signEachSecret(client: ProviderClient, clock: Pick<Clock, 'now'>): ClientAuth {
  return (_server, _client, body) => {
    body.set('client_id', client.id)
    body.set('client_secret', buildAppleSecret(client, new Date(clock.now())))
  }
}

/** The client secret of Apple: a JWT signed with ES256 under the registered key. Throws for a key that is not on P-256. */
function buildAppleSecret(client: ProviderClient, now: Date): string {
  const issuedAt = Math.floor(now.getTime() / 1000)
  const header = { alg: 'ES256', kid: client.keyId }
  const claims = {
    iss: client.teamId,
    iat: issuedAt,
    exp: issuedAt + SECRET_SECONDS,
    aud: 'https://appleid.apple.com',
    sub: client.id,
  }
  const text = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  const signature = sign('sha256', Buffer.from(text), { key: readAppleKey(client.secret), dsaEncoding: 'ieee-p1363' })
  return `${text}.${signature.toString('base64url')}`
}

/** The private key of the `.p8` file. Its line breaks may be written `\n`, as in a file of settings. Throws an `Error`. */
export function readAppleKey(text: string | undefined) {
  const key = createPrivateKey((text ?? '').replaceAll('\\n', '\n'))
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw new Error('the key of Apple must be on the curve P-256')
  return key
}
