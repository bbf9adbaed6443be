import { listExplained } from './explain.ts'

/** Survivors of `src/carriage`. */
export const EXPLAINED_OF_CARRIAGE = listExplained({
  'src/carriage/intake/intake.store.ts': [
    [
      'the table has one row at most',
      ...[
        `\`update log_intake set \${LEASE} where name = 'events' and \${MAY_LEASE} returning \${STATE}\`,`,
        "`update log_intake set runner = null, lease_until = null where name = 'events' and runner = $runner`,",
        `where name = 'events' and \${MAY_LEASE} and incarnation is not distinct from $seenIncarnation`,
        "where name = 'events' and runner = $runner`)",
        "`update log_intake set fault = null, fault_at = null, missing_since = null where name = 'events'`,",
        "from log_intake where name = 'events'`)",
      ].map((lineText) => [lineText, "name = 'events' -> true"] as const),
    ],
    [
      'a lease is of nobody without a process, whenever it ends',
      [
        "`update log_intake set runner = null, lease_until = null where name = 'events' and runner = $runner`,",
        ', lease_until = null -> (nothing)',
      ],
    ],
    [
      'null is equal to no account; the condition saves a look',
      ['const OF_ACCOUNTS = `x.account is not null and exists (', 'x.account is not null -> true'],
    ],
    [
      'only the very instant at which a lease ends by the clock of the database',
      [
        `select \${STATE}, case when lease_until > clock_timestamp() then runner end as runner, taken_at as "takenAt", fault,`,
        '> -> >=',
      ],
    ],
  ],
  'src/carriage/relay/own-event.store.ts': [
    [
      'only reads more: each row is kept by its own id',
      ['where o.document_id = x.id offset 0', 'o.document_id = x.id -> true'],
    ],
  ],
  'src/carriage/intake/intake-decision.ts': [
    [
      'only for the types: no account has the id null, and no instant is before undefined',
      [
        'const own = event.account === null ? undefined : given.own?.get(event.account)',
        'event.account === null -> false',
      ],
      ['if (event.createdAt < given.oldest || (own && event.createdAt < own)) decision.tooOld += 1', 'own -> true'],
    ],
    [
      'only costs a search, which finds the same header, or none',
      ['if (found !== undefined) return found', 'found !== undefined -> false'],
      ['return name === undefined ? undefined : headers[name]', 'name === undefined -> false'],
    ],
    ['of two equal positions either does', ['return parseLsn(one) >= parseLsn(two) ? one : two', '>= -> >']],
  ],
  'src/carriage/intake/intake.ts': [
    [
      'only for the types: the log is read behind a lease alone, whose state is known',
      ['if (fault && seen) {', 'seen -> true'],
    ],
    ['the check of the next round ends it as well', ['suspicion.end()', 'suspicion.end() -> ;']],
    [
      'only renews the lease once sooner',
      ['renewedAtMs = deps.monotonicMs()', 'renewedAtMs = deps.monotonicMs() -> ;'],
    ],
    [
      'with a lease there is no longer pause than this one',
      ['if (isFailing && state && wait <= POLL_MS) {', 'wait <= POLL_MS -> true'],
    ],
    [
      'adds nothing to the number of events that were taken in',
      ['if (taken > 0) deps.onTaken(taken)', 'taken > 0 -> true'],
      ['if (taken > 0) deps.onTaken(taken)', '> -> >='],
    ],
  ],
  'src/carriage/relay/log-check.ts': [
    ['saves a read of nothing', ['if (before >= last) return undefined', '>= -> >']],
    [
      'only reads more than is looked at',
      ['const entries = await log.read({ from: { incarnation, sequence: before }, limit: last - before })', '- -> +'],
    ],
  ],
  'src/carriage/relay/adopted.store.ts': [
    ['the table has one row at most', ["from event_log where name = 'events'`)", "name = 'events' -> true"]],
    [
      'two messages at one place of one log are the same',
      [
        'adopted_event = case when adopted_incarnation is not null and adopted_sequence > $adoptedSequence::float8::bigint',
        '> -> >=',
      ],
      [
        'adopted_sequence = case when adopted_incarnation is not null and adopted_sequence > $adoptedSequence',
        '> -> >=',
      ],
    ],
    [
      'only for the types: a log with an own message has an incarnation',
      ['const hasOwn = incarnation !== null && ownSequence !== null', 'incarnation !== null -> true'],
    ],
  ],
  'src/carriage/relay/relay.ts': [
    [
      'a batch that was refused is not at the end of the log, which is looked at before it counts as stored',
      ['context.unanswered = undefined', 'context.unanswered = undefined -> ;'],
    ],
    [
      'saves a statement that confirms nothing',
      [
        'if (!standing || standing.republication || standing.confirmed.length === 0) return',
        'standing.confirmed.length === 0 -> false',
      ],
    ],
  ],
  'src/carriage/relay/loss.ts': [
    [
      'only for the types: undefined is sorted behind all others',
      [
        'const found = [ofOwn, ofAdopted].filter((each) => each !== undefined)',
        '.filter((each) => each !== undefined) -> (nothing)',
      ],
    ],
    [
      'a replaced log is certain, so that any number above 0 puts it first',
      [
        "const rankOf = ({ loss, isCertain }: Difference) => Number(loss === 'replaced') * 2 + Number(isCertain)",
        '* -> /',
      ],
    ],
  ],
})
