import type { CacheProvider, SAML } from '@node-saml/node-saml'
import type { ResponseShape } from './response-shape.ts'
import { findSigners } from './signed-info.ts'

/** The requests are kept in the database and are checked against it, so the library keeps none. */
const NO_CACHE: CacheProvider = {
  saveAsync: async () => null,
  getAsync: async () => null,
  removeAsync: async () => null,
}

let library: Promise<typeof import('@node-saml/node-saml')> | undefined

/** Loaded at the first sign-in with SAML: it takes a tenth of a second and some 15 MB. */
async function buildVerifier(certificates: readonly string[], shape: ResponseShape): Promise<SAML> {
  library ??= import('@node-saml/node-saml')
  const { SAML, ValidateInResponseTo } = await library
  return new SAML({
    idpCert: [...certificates],
    wantAssertionsSigned: true,
    wantAuthnResponseSigned: shape.isSigned,
    // The library only verifies signatures, because it reads the clock of the machine.
    acceptedClockSkewMs: -1,
    audience: false,
    validateInResponseTo: ValidateInResponseTo.never,
    cacheProvider: NO_CACHE,
    callbackUrl: 'https://unused.invalid/',
    issuer: 'unused',
  })
}

/**
 * Verifies the signature of the assertion, and that of the response where it has one, with one of these certificates.
 * Returns the text that was signed, in its canonical form: the only source of the identity. Undefined when no
 * certificate verifies it. `signers` are the certificates that did.
 */
export async function verifySignature(
  certificates: readonly string[],
  { text, shape }: { text: string; shape: ResponseShape },
): Promise<{ signed: string; signers: string[] } | undefined> {
  const signers = findSigners(certificates, { text, signatures: shape.signatures })
  if (!signers) return undefined
  const verifier = await buildVerifier(signers, shape)
  try {
    const SAMLResponse = Buffer.from(text).toString('base64')
    const { profile } = await verifier.validatePostResponseAsync({ SAMLResponse })
    const signed = profile?.getAssertionXml?.()
    return signed === undefined ? undefined : { signed, signers }
  } catch {
    return undefined
  }
}
