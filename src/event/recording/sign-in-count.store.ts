import { statement } from '../../postgres/statement/statement.ts'

/** Actions that end a sign-in, and how: a step before the end (a start, options, a code) is none. */
const WAYS = {
  'login.local': 'password',
  'login.factor': 'second-factor',
  'login.passkey': 'passkey',
  'login.mail': 'mail',
  'login.oauth-callback': 'provider',
  'login.oauth-form-callback': 'provider',
  'sso.exchange': 'handshake',
} as const

/** Ways of signing in that are counted. */
export const SIGN_IN_WAYS = [...new Set(Object.values(WAYS))]

/** The measure of what was refused, in any way. */
export const REFUSED = 'refused'

const cases = Object.entries(WAYS).map(([action, way]) => `when '${action}' then '${way}'`)

/**
 * The sums of a span, by the minute. Of a step that asks for the second factor only the second counts. The entries are
 * read by the index of their time: each once, in the background.
 */
export const readSignIns = statement<{ at: Date; measure: string; count: number }, { from: Date; to: Date }>(`
  select e.at, e.measure, sum(e.count)::int as count
  from (
    select date_trunc('minute', l.created_at) as at, l.count,
      case when l.outcome = 'success' then case l.action ${cases.join(' ')} end else '${REFUSED}' end as measure
    from audit_log l
    where l.created_at >= $from and l.created_at < $to
      and l.action = any(array[${Object.keys(WAYS)
        .map((action) => `'${action}'`)
        .join(', ')}])
      and coalesce(l.detail->>'reason', '') <> 'second_factor_required'
  ) e
  group by 1, 2`)
