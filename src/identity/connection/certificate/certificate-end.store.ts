import type { AccountId, ConnectionId } from '../../../base/id.ts'
import { rowStatement, statement } from '../../../postgres/statement/statement.ts'

/** Of `$scanned` enabled connections at most, by the end of their last certificate, those that sign somebody in. */
const liveOf = (range: string) => `(
    select c.document_id, c.account, c.certificates_end_at as ends_at from (
      select c.document_id, c.account, c.certificates_end_at from connection c
      where c.is_enabled and ${range} order by c.certificates_end_at limit $scanned) c
    where (select a.deleted_at is null from account a where a.document_id = c.account)
      and (select bool_or(d.verified_at is not null) from connection_domain d where d.connection = c.document_id)) live`

/** Number of connections whose certificates end before `until`, or have ended at `now`. */
export interface CertificateEnds {
  ending: number
  ended: number
}

/** Counts the connections whose certificates end, or have ended, among `scanned` at most of each. */
export const countCertificateEnds = rowStatement<CertificateEnds, { now: Date; until: Date; scanned: number }>(`
  select (select count(*)::int from ${liveOf('c.certificates_end_at > $now and c.certificates_end_at <= $until')}) as ending,
    (select count(*)::int from ${liveOf('c.certificates_end_at <= $now')}) as ended`)

/** A connection, and the end of its last certificate. */
export interface CertificateEnd {
  connection: ConnectionId
  account: AccountId
  endsAt: Date
}

/** The counted connections whose certificates end nearest to `now`, `limit` at most. */
export const listCertificateEnds = statement<
  CertificateEnd,
  { now: Date; until: Date; scanned: number; limit: number }
>(`
  select live.document_id as connection, live.account, live.ends_at as "endsAt"
  from ${liveOf('c.certificates_end_at <= $until')}
  order by abs(extract(epoch from live.ends_at - $now::timestamptz)), live.document_id limit $limit`)
