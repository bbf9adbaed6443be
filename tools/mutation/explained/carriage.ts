import { listExplained } from './explain.ts'

/** Survivors of `src/carriage`. */
export const EXPLAINED_OF_CARRIAGE = listExplained({
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
    ['of two equal positions either does', ['return numberOf(one) >= numberOf(two) ? one : two', '>= -> >']],
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
    [
      'only for the types: no event has the id undefined',
      ['return found === undefined ? undefined : own.get(found)', 'found === undefined -> false'],
    ],
  ],
  'src/carriage/relay/adopted.store.ts': [
    ['the table has one row at most', ["from event_log where name = 'events'`)", "name = 'events' -> true"]],
    [
      'only for the types: a log with an own message has an incarnation',
      ['const hasOwn = incarnation !== null && ownSequence !== null', 'incarnation !== null -> true'],
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
