import Provider from 'oidc-provider'
import { readJwtTokenId } from '../grant/state-id.ts'

/** A token of the provider's model `AccessToken`, as far as this file reads it. */
interface TokenModel {
  IN_PAYLOAD: readonly string[]
  find(value: string, options?: object): Promise<{ aud?: string | string[] } | undefined>
  prototype: {
    getValueAndPayload(this: StoredToken): Promise<{ value: string; payload?: Record<string, unknown> }>
  }
}

interface StoredToken {
  format?: string
  exp?: number
  [member: string]: unknown
}

/**
 * Keeps the access tokens for the API, which are JWTs, in the state of the provider too, under their `jti` and with a hash
 * of the whole token. So revocation, introspection and userinfo take what a client holds, and a token that was revoked is
 * found to be so at once (docs/contract/oauth.md#access-token).
 */
export function keepApiTokens(provider: Provider, apiResource: string): void {
  const model = provider.AccessToken as unknown as TokenModel
  // A getter, which builds the list anew at each use.
  const members = model.IN_PAYLOAD
  const buildOwn = model.prototype.getValueAndPayload
  model.prototype.getValueAndPayload = async function () {
    const built = await buildOwn.call(this)
    const token = this.format === 'jwt' ? readJwtTokenId(built.value) : undefined
    if (!token) return built
    const payload: Record<string, unknown> = {}
    for (const name of members) if (this[name] !== undefined) payload[name] = this[name]
    const claims = findAskedClaims()
    if (claims) payload.claims = claims
    const { iat, exp } = token.claims
    return { ...built, payload: Object.assign(payload, { iat, exp, format: 'opaque', tokenHash: token.tokenHash }) }
  }
  const findOwn = model.find.bind(model)
  model.find = async (value, options) => {
    const found = await findOwn(value, options)
    // The audience keeps a token for another resource from userinfo; the API's own tokens may read it.
    if (found?.aud === apiResource && Provider.ctx?.oidc?.route === 'userinfo') delete found.aud
    return found
  }
}

/**
 * What the request asked for in userinfo by the parameter `claims`, as the code or refresh token of this request keeps it. The
 * library leaves it out of tokens for an API, which userinfo refuses there.
 */
function findAskedClaims(): { userinfo: object } | undefined {
  const { AuthorizationCode: code, DeviceCode: device, RefreshToken: refresh } = Provider.ctx?.oidc.entities ?? {}
  const source = (code ?? device ?? refresh) as { claims?: { userinfo?: object } } | undefined
  const userinfo = source?.claims?.userinfo
  return userinfo && { userinfo }
}
