import { listExplained } from './explain.ts'

/** Survivors of results, failure counts and pulls of webhooks. */
export const EXPLAINED_OF_RESULTS = listExplained({
  'src/webhook/delivery/claim.store.ts': [
    [
      'the first part has the earlier time of the webhooks that this worker may visit now',
      [
        `(select visit_at + \${LATE_VISIT} from webhook_queue where visitor <> $workerId and not is_held`,
        'visitor <> $workerId -> true',
      ],
    ],
  ],
  'src/webhook/delivery/settle.store.ts': [
    [
      'the same statement writes that row again, and PostgreSQL runs the part behind first: a changed row is not deleted',
      [
        "where document_id = any(array(select id from claim where status <> 'retrying'))",
        "status <> 'retrying' -> true",
      ],
    ],
    [
      'saves a statement that changes no row',
      ['if (changes.length === 0) return { settled: [], deferred: [] }', 'changes.length === 0 -> false'],
      ['if (ids.length > 0) await removeOrphans(db, { ids })', 'ids.length > 0 -> true'],
      ['if (ids.length > 0) await removeOrphans(db, { ids })', '> -> >='],
    ],
  ],
  'src/webhook/delivery/settle.ts': [
    [
      'saves statements that record nothing',
      ['if (rest.length === 0) return { recorded, notices: [], heldBack: [] }', 'rest.length === 0 -> false'],
      ['if (attempts.length === 0) return { recorded: [], notices: [], heldBack }', 'attempts.length === 0 -> false'],
    ],
    [
      'a second wall: the statement deletes only rows whose webhook is gone',
      [
        'attempts.filter((attempt) => !webhooks.has(attempt.webhook)).map((attempt) => attempt.id),',
        '.filter((attempt) => !webhooks.has(attempt.webhook)) -> (nothing)',
      ],
    ],
    [
      'only leaves out results that are void: their rows are deleted before',
      ['const decided = attempts', '.filter((attempt) => webhooks.has(attempt.webhook)) -> (nothing)'],
    ],
    [
      'only for the types: undefined is stored as null',
      [
        "statusCode: 'statusCode' in attempt.result ? attempt.result.statusCode : null,",
        "'statusCode' in attempt.result -> true",
      ],
    ],
    [
      'a webhook without an ended delivery keeps its count, and is left out a few lines on',
      ['if (own.length === 0) continue', 'own.length === 0 -> false'],
    ],
    [
      'only for the types: a webhook without an account is global',
      ['if (account === null) return []', 'account === null -> false'],
    ],
  ],
  'src/webhook/delivery/failure-count.ts': [
    [
      'only for the types: null is before every instant',
      [
        'const isBehindSuccess = earlier.lastSuccessAt !== null && earlier.lastSuccessAt > endedAt',
        'earlier.lastSuccessAt !== null -> true',
      ],
    ],
  ],
  'src/webhook/delivery/outcome.ts': [
    [
      'only for the types: undefined is no status',
      [
        "const isGone = 'statusCode' in input.result && input.result.statusCode === GONE",
        "'statusCode' in input.result -> true",
      ],
    ],
  ],
  'src/webhook/delivery/recorded-end.store.ts': [
    [
      'only looks for what ended behind deliveries that count for nothing',
      [
        "const counted = recorded.filter(({ failureCount }) => failureCount !== 'keep')",
        ".filter(({ failureCount }) => failureCount !== 'keep') -> (nothing)",
      ],
    ],
    [
      'saves a statement that finds nothing',
      ['if (counted.length === 0) return new Map()', 'counted.length === 0 -> false'],
    ],
  ],
  'src/webhook/pull/receipt.ts': [
    [
      'no receipt has the fence between that of a lease and that of the next one',
      [
        'row.leasedUntil === null && row.lastError === RETURNED.errorClass && row.fence - fence === (row.isEnded ? 0 : 1),',
        'row.leasedUntil === null -> true',
      ],
    ],
  ],
  'src/webhook/ledger/replay.store.ts': [
    ['only looks once more for a row that is not there', ['for (let look = 0; look < LOOKS; look += 1) {', '< -> <=']],
    ['saves a statement that changes no row', ['if (ids.length === 0) return', 'ids.length === 0 -> false']],
  ],
  'src/webhook/replay/replay-job.ts': [
    [
      'only for the types: a group has a row at least',
      [
        '.map(([webhook, rows]) => ({ webhook, isActive: rows[0]?.isWebhookActive ?? false, ...sumOf(rows) }))',
        'false -> true',
      ],
    ],
  ],
  'src/webhook/pull/pull-waits.ts': [
    [
      'the loop ends a look later as well: behind its pause it asks for both again',
      ...['waiters.size > 0 -> true', '> -> >=', '!stopping.signal.aborted -> true'].map(
        (change) => ['while (waiters.size > 0 && !stopping.signal.aborted) {', change] as const,
      ),
    ],
  ],
  'src/webhook/pull/pull.store.ts': [
    [
      'orders the locks under every plan: that by the primary key walks it in the order of the ids itself',
      ['order by x.document_id for update))', 'for update -> (nothing)'],
    ],
    ['saves a statement that changes no row', ['if (leases.length === 0) return []', 'leases.length === 0 -> false']],
  ],
})
