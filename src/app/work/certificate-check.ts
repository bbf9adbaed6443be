import type { Logger } from 'pino'
import type { NewIncident } from '../../delivery/incident/alert.ts'
import {
  decideConnectionHealth,
  listNearestEnds,
  readConnectionFacts,
} from '../../identity/connection/certificate/certificate-end.ts'
import type { Database } from '../../postgres/statement/database.ts'

/** Interval between the lines of one process, ms. */
const LINE_MS = 86_400_000

const NAMED_LIMIT = 10

/** Builds the check of certificates of SAML connections: one incident for all, which a log line a day names. */
export function buildCertificateCheck(
  logger: Logger,
): (db: Database, now: Date) => Promise<(NewIncident & { isOn: boolean })[]> {
  let loggedAtMs = Number.NEGATIVE_INFINITY
  return async (db, now) => {
    const facts = await readConnectionFacts(db, now)
    const { certificates_ending: ending, certificates_ended: ended } = facts
    const isOn = decideConnectionHealth(facts) === 'degraded'
    if (isOn && now.getTime() - loggedAtMs >= LINE_MS) {
      loggedAtMs = now.getTime()
      const nearest = await listNearestEnds(db, now, NAMED_LIMIT)
      const connections = nearest.map(({ endsAt, ...ids }) => ({ ...ids, ends_at: endsAt.toISOString() }))
      logger.warn(
        { ending, ended, connections },
        'certificates of connections end: see docs/operations.md, certificates of connections',
      )
    }
    return [
      {
        incident: 'certificate-ending',
        subject: 'connections',
        summary: `The last certificate of ${ending} SAML connections ends within 14 days, and that of ${ended} has ended.`,
        url: '/api/v3/health/component/connections',
        isOn,
      },
    ]
  }
}
