import type { Database } from '../../../postgres/statement/database.ts'
import { type CertificateEnd, countCertificateEnds, listCertificateEnds } from './certificate-end.store.ts'

/** How long before its end a certificate is reported, ms. */
const REPORTED_MS = 14 * 86_400_000

/** Upper bound of each count: this many, or more. */
const COUNT_LIMIT = 10_000

/** The facts of the component `connections`. */
export interface ConnectionFacts {
  /** SAML connections in use whose last certificate ends within 14 days. */
  certificates_ending: number
  /** Those whose last certificate has ended. */
  certificates_ended: number
  /** Remedy; null while none is needed. */
  remedy: string | null
}

const REMEDY =
  'Have the account add the next certificate of its identity provider to the connection, or disable the connection if nobody uses it. Sign-ins still work: see docs/operations.md, certificates of connections.'

const rangeAt = (now: Date) => ({ now, until: new Date(now.getTime() + REPORTED_MS), scanned: COUNT_LIMIT })

/** Reads the facts of the component: index entries of the certificates that end, a bounded number. */
export async function readConnectionFacts(db: Database, now: Date): Promise<ConnectionFacts> {
  const { ending = 0, ended = 0 } = (await countCertificateEnds(db, rangeAt(now))) ?? {}
  return {
    certificates_ending: ending,
    certificates_ended: ended,
    remedy: ending + ended > 0 ? REMEDY : null,
  }
}

/** `degraded` while a certificate is due to be replaced (docs/contract/saml.md#end-of-a-certificate). */
export function decideConnectionHealth(facts: ConnectionFacts): 'operational' | 'degraded' {
  return facts.certificates_ending + facts.certificates_ended > 0 ? 'degraded' : 'operational'
}

/** The connections whose certificates end nearest to `now`, within 14 days or before it. */
export function listNearestEnds(db: Database, now: Date, limit: number): Promise<CertificateEnd[]> {
  return listCertificateEnds(db, { ...rangeAt(now), limit })
}
