/** How long before the end of a certificate the console warns, ms. */
const WARNING_MS = 30 * 86_400_000

/** The age of a certificate: `ending` from 30 days before its end. */
export type CertificateAge = 'valid' | 'ending' | 'ended'

/** The age of a certificate with this end. Pure. */
export function findCertificateAge(notAfter: string, nowMs: number): CertificateAge {
  const leftMs = Date.parse(notAfter) - nowMs
  if (leftMs <= 0) return 'ended'
  return leftMs <= WARNING_MS ? 'ending' : 'valid'
}
