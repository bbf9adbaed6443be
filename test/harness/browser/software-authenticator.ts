import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isoCBOR } from '@simplewebauthn/server/helpers'

/** Values that CBOR encodes (RFC 8949). */
export type CborValue = Parameters<typeof isoCBOR.encode>[0]

/** Deviations of an answer, for attacks. */
export interface Deviation {
  origin?: string
  rpId?: string
  isUserVerified?: boolean
  isUserPresent?: boolean
  crossOrigin?: boolean
  challenge?: string
  userHandle?: string | null
  counter?: number
  /** Attestation other than `none`, of what is registered. */
  attestation?: (registered: Registered) => { fmt: string; attStmt: Map<string, CborValue> }
  /** The id of another credential. */
  id?: string
  type?: string
}

/** Signed bytes of an attestation. */
export interface Registered {
  rpIdHash: Buffer
  clientDataHash: Buffer
  id: Buffer
  /** The point of the public key, uncompressed. */
  point: Buffer
}

/** The members of options that an authenticator reads. */
interface Options {
  challenge: string
  user?: { id: string }
}

const hash = (data: Buffer | string) => createHash('sha256').update(data).digest()

const FLAG_PRESENT = 0x01
const FLAG_VERIFIED = 0x04
const FLAG_BACKUP_ELIGIBLE = 0x08
const FLAG_BACKED_UP = 0x10
const FLAG_CREDENTIAL = 0x40

/** A passkey in software (WebAuthn level 3): an ES256 key that signs, with a counter, and attestation `none`. */
export class SoftwareAuthenticator {
  readonly id = randomBytes(16)
  readonly #key: KeyObject
  readonly #publicKey: KeyObject
  readonly #site: { origin: string; rpId: string }
  readonly #isSynced: boolean
  #counter = 0
  #userHandle: string | undefined

  constructor(site: { origin: string; rpId: string }, { isSynced = false } = {}) {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.#key = privateKey
    this.#publicKey = publicKey
    this.#site = site
    this.#isSynced = isSynced
  }

  #clientData(type: string, options: Options, deviation: Deviation): Buffer {
    const { origin = this.#site.origin, challenge = options.challenge, crossOrigin = false } = deviation
    return Buffer.from(JSON.stringify({ type: deviation.type ?? type, challenge, origin, crossOrigin }))
  }

  #authenticatorData(deviation: Deviation, attested?: Buffer): Buffer {
    const { isUserVerified = true, isUserPresent = true, rpId = this.#site.rpId } = deviation
    const flags =
      (isUserPresent ? FLAG_PRESENT : 0) |
      (isUserVerified ? FLAG_VERIFIED : 0) |
      (this.#isSynced ? FLAG_BACKUP_ELIGIBLE | FLAG_BACKED_UP : 0) |
      (attested ? FLAG_CREDENTIAL : 0)
    // A synced passkey does not count.
    if (!this.#isSynced) this.#counter += 1
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(deviation.counter ?? this.#counter)
    return Buffer.concat([hash(rpId), Buffer.from([flags]), counter, attested ?? Buffer.alloc(0)])
  }

  /** Answers the options of a registration, as `PublicKeyCredential.toJSON()` does. */
  create(options: Options, deviation: Deviation = {}): Record<string, unknown> {
    this.#userHandle = options.user?.id
    const { x = '', y = '' } = this.#publicKey.export({ format: 'jwk' })
    const coordinates = [x, y].map((item) => new Uint8Array(Buffer.from(item, 'base64url')))
    const key = new Map<number, CborValue>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, coordinates[0]!],
      [-3, coordinates[1]!],
    ])
    const length = Buffer.from([this.id.length >> 8, this.id.length & 255])
    const attested = Buffer.concat([Buffer.alloc(16), length, this.id, isoCBOR.encode(key)])
    const authData = this.#authenticatorData(deviation, attested)
    const clientData = this.#clientData('webauthn.create', options, deviation)
    const { fmt, attStmt } = deviation.attestation?.({
      rpIdHash: authData.subarray(0, 32),
      clientDataHash: hash(clientData),
      id: this.id,
      point: Buffer.concat([Buffer.from([4]), ...coordinates]),
    }) ?? { fmt: 'none', attStmt: new Map() }
    const attestation = new Map<string, CborValue>([
      ['fmt', fmt],
      ['attStmt', attStmt],
      ['authData', authData],
    ])
    const response = {
      clientDataJSON: clientData.toString('base64url'),
      attestationObject: Buffer.from(isoCBOR.encode(attestation)).toString('base64url'),
      transports: ['internal'],
    }
    return this.#toJson(response, deviation)
  }

  /** Answers the options of a proof. */
  get(options: Options, deviation: Deviation = {}): Record<string, unknown> {
    const clientData = this.#clientData('webauthn.get', options, deviation)
    const data = this.#authenticatorData(deviation)
    const signature = sign('sha256', Buffer.concat([data, hash(clientData)]), this.#key)
    const { userHandle = this.#userHandle } = deviation
    const response = {
      clientDataJSON: clientData.toString('base64url'),
      authenticatorData: data.toString('base64url'),
      signature: signature.toString('base64url'),
      userHandle,
    }
    return this.#toJson(response, deviation)
  }

  #toJson(response: object, { id = this.id.toString('base64url') }: Deviation): Record<string, unknown> {
    return {
      id,
      rawId: id,
      type: 'public-key',
      response,
      authenticatorAttachment: 'platform',
      clientExtensionResults: {},
    }
  }
}
