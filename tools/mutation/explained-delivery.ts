import type { Explained } from './explained.ts'

/** Survivors of the guard of callback URLs: file, line, change, reason. */
const OF_GUARD: readonly (readonly [file: string, lineText: string, change: string, reason: string])[] = [
  [
    'address',
    `if (range === undefined) throw new Error(\`not an address range: $\{text}\`)`,
    'range === undefined -> false',
    'only for the types: the ranges are constants of the file',
  ],
  [
    'callback-url',
    "if (/^(?:[0-9]+|0x[0-9a-f]*)$/.test(suffix)) return refuseHost('ends in a number without being an address')",
    '/^(?:[0-9]+|0x[0-9a-f]*)$/.test(suffix) -> false',
    'a second wall: the parser of URLs reads such a host as an address, or not at all',
  ],
  [
    'callback-url',
    'const sink = rules.sinkUrl === undefined ? null : URL.parse(rules.sinkUrl)',
    'rules.sinkUrl === undefined -> false',
    'only for the types: the text of undefined is no URL',
  ],
  [
    'callback-url',
    'if (rules.allowedPrivateTargets.length === 0) return false',
    'rules.allowedPrivateTargets.length === 0 -> false',
    'saves the reading of an address: none of no targets is allowed',
  ],
  [
    'callback-url',
    "(target) => target.kind === 'host' && target.host === url.hostname && (target.port ?? port) === port,",
    "target.kind === 'host' -> true",
    'only for the types: a range has no host',
  ],
  [
    'dns',
    "each.status === 'rejected' ? [each.reason as { code?: string }] : [],",
    "each.status === 'rejected' -> true",
    'only for the types: a question that is answered has an address, and then nothing failed',
  ],
  [
    'dns',
    "throw failure ?? new Error('no address')",
    "failure ?? new Error('no address') -> (failure)",
    'only for the types: without an address both questions have failed',
  ],
  [
    'dns-text',
    'if (options.servers !== undefined) resolver.setServers(options.servers)',
    'options.servers !== undefined -> true',
    'only shows where the name servers of the machine are asked, which no test does',
  ],
  [
    'resolve',
    "options.signal?.addEventListener('abort', onStop, { once: true })",
    'true -> false',
    'the end of the look-up removes the listener as well',
  ],
  [
    'resolve',
    'if (error instanceof OwnFault) return failDns(error.code)',
    'error instanceof OwnFault -> true',
    'a second wall: all else that a look-up rejects with is an answer already',
  ],
]

/** The survivors of `src/delivery`, and of the guard that it dials through, that are explained. */
export const EXPLAINED_OF_DELIVERY: readonly Explained[] = [
  ...OF_GUARD.map(([file, lineText, change, reason]) => ({
    ...{ path: `src/outbound/guard/${file}.ts`, lineText, change, reason },
  })),
  {
    path: 'src/delivery/dispatcher/attempts.ts',
    lineText: "if (works.length > 0) deps.onDispatcherPoint?.('after-claim')",
    change: 'works.length > 0 -> true',
    reason: 'only the point at which crash tests stop a process',
  },
  {
    path: 'src/delivery/dispatcher/attempts.ts',
    lineText: "if (works.length > 0) deps.onDispatcherPoint?.('after-claim')",
    change: 'works.length > 0 -> false',
    reason: 'only the point at which crash tests stop a process',
  },
  {
    path: 'src/delivery/dispatcher/waiting.ts',
    lineText: 'if (isScarce || (mayWait && isFull && hasRoom())) notify()',
    change: 'hasRoom() -> true',
    reason: 'the round that this begins asks for room again before it claims',
  },
  ...['let mayWait = false', 'let isFull = false'].map((lineText) => ({
    path: 'src/delivery/dispatcher/waiting.ts',
    lineText,
    change: 'false -> true',
    reason: 'the first round sets it before an attempt can end or a wait begin',
  })),
  {
    path: 'src/delivery/dispatcher/waiting.ts',
    lineText: "sleep.abort('over')",
    change: "sleep.abort('over') -> ;",
    reason: 'only has a timer run on until the look that it was for',
  },
  {
    path: 'src/delivery/dispatcher/lanes.ts',
    lineText: 'return inFlight === 0 || fastSlots >= Math.max(1, concurrency / 8)',
    change: 'inFlight === 0 -> false',
    reason: 'with nothing in flight all slots are free, which is at least an eighth',
  },
  {
    path: 'src/delivery/queue/visiting-claim.ts',
    lineText: 'if (claimed.length > 0 || isAll || visited >= VISITED.most) return claimed',
    change: 'visited >= VISITED.most -> false',
    reason: 'bounds what one claim costs; what lies beyond is found by the next poll as well',
  },
  {
    path: 'src/delivery/queue/visiting-claim.ts',
    lineText: 'if (claimed.length > 0 || isAll || visited >= VISITED.most) return claimed',
    change: '>= -> >',
    reason: 'bounds what one claim costs, here by one visit more',
  },
  {
    path: 'src/delivery/queue/visiting-claim.ts',
    lineText: 'if (claimed.length > 0 || isAll || visited >= VISITED.most) return claimed',
    change: 'isAll -> false',
    reason: 'only has a claim visit once more after it has seen all groups',
  },
  {
    path: 'src/delivery/post/echoed-headers.ts',
    lineText: 'if (secrets.length === 0) return outcome',
    change: 'secrets.length === 0 -> false',
    reason: 'saves a copy, in which nothing would be hidden',
  },
  {
    path: 'src/delivery/worker.store.ts',
    lineText: "where l.locktype = 'advisory' and l.objsubid = 1 and l.granted",
    change: "l.locktype = 'advisory' -> true",
    reason: 'no other lock has a sub-object 1 beside the two halves of a key, but by chance',
  },
  {
    path: 'src/delivery/post/reencrypt.ts',
    lineText: 'if (!last || batch.length < BATCH_SIZE) return reencrypted',
    change: 'batch.length < BATCH_SIZE -> false',
    reason: 'saves the statement that finds no further row',
  },
  {
    path: 'src/delivery/queue/queue-statement.ts',
    lineText: 'if (claims.length === 0) return',
    change: 'claims.length === 0 -> false',
    reason: 'saves a statement that changes no row',
  },
  {
    path: 'src/delivery/routing/routing.store.ts',
    lineText:
      'select event_id from event_queue where event_id > $after order by event_id limit $limit for update skip locked))',
    change: '> -> >=',
    reason: 'the event with this id was taken in the round before, or no event has it',
  },
  ...['input.subjects.length > 0 -> true', '> -> >='].map((change) => ({
    path: 'src/delivery/incident/alert.ts',
    lineText: 'if (input.subjects.length > 0) await resolveIncidents(db, input)',
    change,
    reason: 'saves a statement that changes no row',
  })),
  {
    path: 'src/delivery/routing/inline-routing.ts',
    lineText: 'if (policies.countSlots() === 0) return undefined',
    change: 'policies.countSlots() === 0 -> false',
    reason: 'saves the turns: the slots are counted again once they are taken',
  },
  {
    path: 'src/delivery/routing/queue-looks.ts',
    lineText: 'after = isFull && last ? last : firstIdAt(clock.now() - RECENT_MS)',
    change: 'last -> true',
    reason: 'only for the types: a full batch has a last event',
  },
  {
    path: 'src/delivery/routing/queue-looks.ts',
    lineText: 'let hasBacklog = false',
    change: 'false -> true',
    reason: 'the first look is one through the whole queue, which ends no backlog and sets it',
  },
  {
    path: 'src/delivery/routing/router.ts',
    lineText: 'let isNotified = false',
    change: 'false -> true',
    reason: 'each look sets it before anything reads it',
  },
  {
    path: 'src/delivery/routing/router.ts',
    lineText: "sleep.abort('over')",
    change: "sleep.abort('over') -> ;",
    reason: 'only has a timer run on for a second at most',
  },
  {
    path: 'src/delivery/routing/router.ts',
    lineText: 'let hasFanOut = false',
    change: 'false -> true',
    reason: 'the first look is one through the whole queue, which sets it',
  },
  {
    path: 'src/delivery/routing/router.ts',
    lineText: 'if (hasMore || hasFanOut) continue',
    change: 'hasFanOut -> false',
    reason: 'what ended the parts, a notification or a due look, ends the wait as well',
  },
  {
    path: 'src/delivery/dispatcher/acknowledger.ts',
    lineText: 'return heldBack.size === 0 ? [] : batch.filter(isHeldBack)',
    change: 'heldBack.size === 0 -> false',
    reason: 'saves a filter that finds nothing',
  },
  {
    path: 'src/delivery/dispatcher/acknowledger.ts',
    lineText: 'if (heldBack.length > 0) setApart(heldBack, Promise.resolve(heldBack))',
    change: 'heldBack.length > 0 -> true',
    reason: 'sets apart no group when nothing is held back',
  },
  {
    path: 'src/delivery/dispatcher/acknowledger.ts',
    lineText: 'if (heldBack.length > 0) setApart(heldBack, Promise.resolve(heldBack))',
    change: '> -> >=',
    reason: 'sets apart no group when nothing is held back',
  },
  {
    path: 'src/delivery/dispatcher/acknowledger.ts',
    lineText: "over.abort('over')",
    change: "over.abort('over') -> ;",
    reason: 'only has a timer run on for 250 ms at most',
  },
  {
    path: 'src/delivery/dispatcher/attempts.ts',
    lineText: "if (works.length > 0) deps.onDispatcherPoint?.('after-claim')",
    change: '> -> >=',
    reason: 'only the point at which crash tests stop a process',
  },
  {
    path: 'src/delivery/dispatcher/attempts.ts',
    lineText: 'grace.abort()',
    change: 'grace.abort() -> ;',
    reason: 'only has a timer run on for the rest of the time that attempts have to end',
  },
  {
    path: 'src/delivery/dispatcher/dispatcher.ts',
    lineText: 'if (request.fastSlots + request.slowSlots === 0) return []',
    change: 'request.fastSlots + request.slowSlots === 0 -> false',
    reason: 'saves a statement: a claim without a slot finds nothing',
  },
  {
    path: 'src/delivery/dispatcher/giving-back.ts',
    lineText: 'const line = { err: error, wait_ms: waitMs, ...(error instanceof OwnFault && { code: error.code }) }',
    change: 'error instanceof OwnFault -> true',
    reason: 'only what the log says of the fault',
  },
  {
    path: 'src/delivery/dispatcher/giving-back.ts',
    lineText: 'const line = { err: error, wait_ms: waitMs, ...(error instanceof OwnFault && { code: error.code }) }',
    change: '{ code: error.code } -> true',
    reason: 'only what the log says of the fault',
  },
  {
    path: 'src/delivery/dispatcher/giving-back.ts',
    lineText: 'if (error instanceof OwnFault && error.isOfProcess) pausedUntilMs = waitUntilMs',
    change: 'error instanceof OwnFault -> true',
    reason: 'only for the types: no other error is one of the process',
  },
  {
    path: 'src/delivery/incident/alert.ts',
    lineText: 'if (incidents.length === 0) return',
    change: 'incidents.length === 0 -> false',
    reason: 'saves a statement that inserts no row',
  },
  {
    path: 'src/delivery/post/callback-field.ts',
    lineText:
      "if (code !== 'url_host_not_public' || !callbackRules.allowHttp || !url) return invalidField('url', code, message)",
    change: '!url -> false',
    reason: 'only for the types: what is no URL is refused with another code',
  },
  {
    path: 'src/delivery/worker-lease.ts',
    lineText: 'return worker.isExpired || (since !== undefined && nowMs - since >= LOCK_LOST_MS)',
    change: 'since !== undefined -> true',
    reason: 'only for the types: no difference to undefined is as large as anything',
  },
  {
    path: 'src/delivery/worker.store.ts',
    lineText: "where l.locktype = 'advisory' and l.objsubid = 1 and l.granted",
    change: 'l.granted -> true',
    reason: 'the lock of a worker is shared, and nobody takes it for itself alone: nobody waits for it',
  },
  {
    path: 'src/delivery/worker.store.ts',
    lineText: 'return { others, databaseMs: rows[0]?.database_ms ?? Number.NaN }',
    change: 'rows[0]?.database_ms ?? Number.NaN -> (rows[0]?.database_ms)',
    reason: 'only for the types: the statement returns a row with the time always',
  },
]
