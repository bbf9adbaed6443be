import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { ExternalSigningKey } from 'oidc-provider'
import type { SigningAlgorithm } from '../signing-key/signing-key.store.ts'
import type { SigningJwk } from '../signing-key/signing-key.ts'

const signInThread = promisify<string, Uint8Array, KeyObject, Buffer>(sign)

/**
 * A signing key that signs with `node:crypto`. The library signs by Web Crypto, which copies key and data and waits for
 * a thread: for ES256 that takes longer than the signature. RS256, which takes a millisecond, runs in a thread.
 */
export class LocalSigningKey extends ExternalSigningKey {
  readonly #kid: string
  readonly #alg: SigningAlgorithm
  readonly #privateKey: KeyObject
  readonly #publicKey: KeyObject

  constructor(jwk: SigningJwk) {
    super()
    this.#kid = jwk.kid
    this.#alg = jwk.alg
    this.#privateKey = createPrivateKey({ key: jwk, format: 'jwk' })
    this.#publicKey = createPublicKey(this.#privateKey)
  }

  override get kid(): string {
    return this.#kid
  }

  override get alg(): string {
    return this.#alg
  }

  override keyObject(): KeyObject {
    return this.#publicKey
  }

  /** The signature in the form of JWS (RFC 7518 sections 3.3 and 3.4). */
  override sign(data: Uint8Array): Buffer | Promise<Buffer> {
    if (this.#alg === 'RS256') return signInThread('sha256', data, this.#privateKey)
    return sign('sha256', data, { key: this.#privateKey, dsaEncoding: 'ieee-p1363' })
  }
}
