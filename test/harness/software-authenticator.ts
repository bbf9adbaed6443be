import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** What an answer may deviate in, to attack with. */
export interface Deviation {
  origin?: string
  rpId?: string
  isUserVerified?: boolean
  isUserPresent?: boolean
  crossOrigin?: boolean
  challenge?: string
  userHandle?: string | null
  counter?: number
  /** Attestation other than `none`. */
  attestation?: { fmt: string; attStmt: Map<string, unknown> }
  /** The id of another credential. */
  id?: string
  type?: string
}

/** The members of options that an authenticator reads. */
interface Options {
  challenge: string
  user?: { id: string }
}

const hash = (data: Buffer | string) => createHash('sha256').update(data).digest()

/** Encodes what WebAuthn needs of CBOR (RFC 8949): integers, bytes, text, lists and maps. */
function encodeCbor(value: unknown): Buffer {
  const head = (major: number, length: number) =>
    length < 24
      ? Buffer.from([(major << 5) | length])
      : length < 256
        ? Buffer.from([(major << 5) | 24, length])
        : Buffer.from([(major << 5) | 25, length >> 8, length & 255])
  if (typeof value === 'number') return value >= 0 ? head(0, value) : head(1, -1 - value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value])
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(encodeCbor)])
  if (value instanceof Map)
    return Buffer.concat([
      head(5, value.size),
      ...[...value].flatMap(([key, one]) => [encodeCbor(key), encodeCbor(one)]),
    ])
  throw new Error('the encoder of tests does not know this value')
}

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
    const coordinates = [x, y].map((one) => Buffer.from(one, 'base64url'))
    const key = new Map<number, unknown>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, coordinates[0]],
      [-3, coordinates[1]],
    ])
    const length = Buffer.from([this.id.length >> 8, this.id.length & 255])
    const attested = Buffer.concat([Buffer.alloc(16), length, this.id, encodeCbor(key)])
    const { fmt, attStmt } = deviation.attestation ?? { fmt: 'none', attStmt: new Map() }
    const attestation = new Map<string, unknown>([
      ['fmt', fmt],
      ['attStmt', attStmt],
      ['authData', this.#authenticatorData(deviation, attested)],
    ])
    const response = {
      clientDataJSON: this.#clientData('webauthn.create', options, deviation).toString('base64url'),
      attestationObject: encodeCbor(attestation).toString('base64url'),
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
