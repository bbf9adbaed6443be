import type { Explained } from './explained.ts'

/** Survivors of a file that have one reason. */
const of = (path: string, reason: string, ...survivors: (readonly [lineText: string, change: string])[]): Explained[] =>
  survivors.map(([lineText, change]) => ({ path, lineText, change, reason }))

/** The survivors of `src/webhook` that are explained. */
export const EXPLAINED_OF_WEBHOOK: readonly Explained[] = [
  {
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: 'if (!request.hasPeers || !(await isDue(db, request))) return []',
    change: '!request.hasPeers -> false',
    reason: 'saves a statement: without peers the claim has passed over nothing, and another finds nothing',
  },
  {
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: 'if (!request.hasPeers || !(await isDue(db, request))) return []',
    change: '!(await isDue(db, request)) -> false',
    reason: 'saves a statement: a claim of what is not due finds nothing',
  },
  {
    path: 'src/webhook/registry/webhook-secret.store.ts',
    lineText: `where \${column} is not null and not starts_with(\${column}, $prefix)`,
    change: `\${column} is not null -> true`,
    reason: 'starts_with of null is null, which selects nothing either',
  },
  {
    path: 'src/webhook/registry/webhook.store.ts',
    lineText: "await writeAtEnd(db, { parts, ...(isMoved && { invalidations: 'r' }) })",
    change: 'isMoved -> true',
    reason: 'only has this process drop what it holds of subscriptions once more often',
  },
  {
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: 'return dueAt !== null && dueAt <= request.now',
    change: 'dueAt !== null -> true',
    reason: 'null counts as the year 1970 then, which only costs a claim that finds nothing',
  },
  {
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: 'const lock = request.hasPeers ? shareClaims : undefined',
    change: 'request.hasPeers -> true',
    reason: 'without peers only costs a lock that nobody else takes',
  },
  {
    path: 'src/webhook/delivery/incident.ts',
    lineText: 'const still = new Set(subjects.length > 0 ? await find(subjects) : [])',
    change: '> -> >=',
    reason: 'saves a statement that finds nothing',
  },
  {
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: 'where d.webhook = v.webhook and d.next_attempt_at is not null',
    change: 'd.next_attempt_at is not null -> true',
    reason: 'null sorts last: the first row waits, or none does; the condition is that of the index',
  },
  {
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: 'where d.is_test and d.kept_until is null and d.next_attempt_at is not null',
    change: 'd.next_attempt_at is not null -> true',
    reason: 'null sorts last: the first row waits, or none does; the condition is that of the index',
  },
  {
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: 'return dueAt !== null && dueAt <= request.now',
    change: 'dueAt <= request.now -> true',
    reason: 'only costs a claim that finds nothing',
  },
  {
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: 'where d.document_id = any($ids::uuid[])',
    change: 'd.document_id = any($ids::uuid[]) -> true',
    reason: 'the pairs of the next line hold the ids; it only finds the rows by their key',
  },
  {
    path: 'src/webhook/delivery/routing.store.ts',
    lineText: 'if (found) return found',
    change: 'found -> false',
    reason: 'only costs putting the same text together again',
  },
  {
    path: 'src/webhook/delivery/routing.store.ts',
    lineText: 'parts.set(rowsOfEvent, made)',
    change: 'parts.set(rowsOfEvent, made) -> ;',
    reason: 'only costs putting the same text together again',
  },
  {
    path: 'src/webhook/delivery/routing.store.ts',
    lineText: "and t.account_scope = 'account' and not e.is_purge`",
    change: 'not e.is_purge -> true',
    reason: 'a purge is recorded without an account, which no subscription has',
  },
  {
    path: 'src/webhook/delivery/routing.store.ts',
    lineText:
      'const IS_RECIPIENT = `w.is_actived and w.deleted_at is null and coalesce(w.ordinal <= e.ordinal, w.created_at <= e.created_at)',
    change: '<= -> <',
    reason: 'numbers of one sequence: a webhook and an event never have the same; a test has the times',
  },
  {
    path: 'src/webhook/delivery/routing.store.ts',
    lineText: 'select event_id, reached from webhook_fan_out order by event_id limit 1 for update skip locked',
    change: 'skip locked -> (nothing)',
    reason: 'only has a second router wait for the part that the first one writes',
  },
  {
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: 'where due_at is not null and (not is_live or visit_at <> greatest(due_at, served_at, free_at))',
    change: '(not is_live or visit_at <> greatest(due_at, served_at, free_at)) -> true',
    reason: 'only writes the place of a webhook again that has not changed',
  },
  {
    path: 'src/webhook/delivery/settle.ts',
    lineText: "const lastStatusCode = 'statusCode' in attempt.result ? attempt.result.statusCode : null",
    change: "'statusCode' in attempt.result -> true",
    reason: 'only for the types: undefined is stored as null',
  },
  {
    path: 'src/webhook/reach/account-reach.ts',
    lineText: "if (request.scope !== 'all') await checkWithin(kind, request)",
    change: "request.scope !== 'all' -> true",
    reason: 'only costs a statement, which finds the row in all accounts',
  },
  {
    path: 'src/webhook/registry/webhook.ts',
    lineText:
      'const isClear = webhook.consecutiveFailures === 0 && webhook.disabledAt === null && webhook.disabledReason === null',
    change: 'webhook.disabledReason === null -> true',
    reason: 'a webhook that is active has no reason, for activation clears it',
  },
  {
    path: 'src/webhook/explanation/routing-explanation.ts',
    lineText: `return \`Ended \${status} after \${posts} (last error: \${lastError ?? 'none'}). Repair the subscriber, then POST /api/v3/webhook/dispatch/\${id}/replay.\``,
    change: "lastError ?? 'none' -> (lastError)",
    reason: 'only for the types: what ended without a delivery has a last error',
  },
  {
    path: 'src/webhook/pull/lease-end.ts',
    lineText: 'if (lapsed.length === 0) return',
    change: 'lapsed.length === 0 -> false',
    reason: 'saves a statement that ends nothing',
  },
  {
    path: 'src/webhook/mail/notice-mails.ts',
    lineText: 'const texts = findLanguage([language]) ?? ENGLISH',
    change: 'findLanguage([language]) ?? ENGLISH -> (findLanguage([language]))',
    reason: 'only for the types: a user has one of the languages of the service',
  },
  {
    path: 'src/webhook/ledger/dispatch.store.ts',
    lineText: 'return false',
    change: 'false -> true',
    reason: 'only reads a part of the ledger in which the filter finds nothing',
  },
  {
    path: 'src/webhook/pull/pull.ts',
    lineText: 'if (!isReady) continue',
    change: '!isReady -> false',
    reason: 'only looks for due rows once more than told to',
  },
  ...['told.length > 0 -> true', '> -> >='].map((change) => ({
    path: 'src/webhook/mail/notice-mails.ts',
    lineText: 'const readers = told.length > 0 ? await findReaders(tx, account, told) : []',
    change,
    reason: 'saves a statement: readers without a notice get no mail',
  })),
  {
    path: 'src/webhook/activity/outcome.store.ts',
    lineText: 'where (select count(*) from of_webhooks) >= 0',
    change: '>= -> >',
    reason: 'only orders the writes: without a sum of a webhook there is nothing to write',
  },
  {
    path: 'src/webhook/ledger/replay.store.ts',
    lineText: 'if (ids.length === 0) return new Map()',
    change: 'ids.length === 0 -> false',
    reason: 'only saves a statement: no id is the id of no row',
  },
  ...of(
    'src/webhook/delivery/routing.store.ts',
    'the same statement deletes that row, and PostgreSQL runs the part behind first: a deleted row is not updated',
    ['where event_id = any(array(select event_id from webhook_reached where not is_last))', 'not is_last -> true'],
  ),
  ...of(
    'src/webhook/delivery/routing.store.ts',
    'saves a look at the queue, which holds a webhook without a limit for a second at most, behind the removal of one',
    [
      'where not p.is_claimed and not p.is_pull and p.webhook <> all($blocked::uuid[]) and (p.max_per_second is null',
      'p.max_per_second is null -> false',
    ],
  ),
  ...of(
    'src/webhook/archive/parquet.ts',
    'no rows make no row group, and their reader does nothing with them',
    ['if (pending.length > 0) await writeGroup()', 'pending.length > 0 -> true'],
    ['if (pending.length > 0) await writeGroup()', '> -> >='],
    ['if (rows.length > 0) yield rows', 'rows.length > 0 -> true'],
    ['if (rows.length > 0) yield rows', '> -> >='],
  ),
  ...of('src/webhook/archive/read-archive.ts', 'only for the types: a filter that is undefined counts as absent', [
    'for await (const rows of readArchiveFile({ name, bytes, read }, filter && { filter }))',
    'filter -> true',
  ]),
  ...['row.webhook !== undefined -> true', 'this.#webhooks.size <= NAMED_WEBHOOKS -> true'].flatMap((change) =>
    of('src/webhook/archive/manifest.ts', 'only bounds the memory: an entry names few webhooks, that of events none', [
      'if (row.webhook !== undefined && this.#webhooks.size <= NAMED_WEBHOOKS) this.#webhooks.add(row.webhook as string)',
      change,
    ]),
  ),
  ...of(
    'src/webhook/archive/storage/folder-storage.ts',
    'counts when the power of the machine fails, which no test does',
    ['await syncPath(from)', 'await syncPath(from) -> ;'],
    ['await syncPath(dirname(to))', 'await syncPath(dirname(to)) -> ;'],
    ['await handle.sync()', 'await handle.sync() -> ;'],
  ),
  ...of('src/webhook/archive/storage/folder-storage.ts', 'only the text of an error of the system without a code', [
    `new ArchiveError('storage_refused', \`\${what} cannot be read or written (\${code ?? 'failed'}).\`)`,
    "code ?? 'failed' -> (code)",
  ]),
  ...of(
    'src/webhook/explanation/routing-explanation.store.ts',
    'only for the types: a subscription has both times, and none has neither',
    ['link: createdAt && updatedAt && { createdAt, updatedAt, deletedAt },', 'createdAt -> true'],
    ['link: createdAt && updatedAt && { createdAt, updatedAt, deletedAt },', 'updatedAt -> true'],
  ),
  ...of('src/webhook/explanation/routing-forecast.ts', 'the id is part of the key: no two keys are equal', [
    'return { ...home, webhooks: [...byId.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)) }',
    '< -> <=',
  ]),
  ...of(
    'src/webhook/mail/notice-mails.ts',
    'saves statements that write and find no row',
    ['if (recipients.length > 0) await insertMailRecipients(tx, recipients)', 'recipients.length > 0 -> true'],
    ['if (recipients.length > 0) await insertMailRecipients(tx, recipients)', '> -> >='],
    ['if (readers.length === 0) return new Map()', 'readers.length === 0 -> false'],
  ),
  ...of(
    'src/webhook/mail/notice-mails.ts',
    'saves two writes: what is taken of a user without room is held back again in the same transaction',
    ...['.filter(({ room }) => room > 0) -> (nothing)', '> -> >='].map(
      (change) => ['const told = rooms.filter(({ room }) => room > 0).map(({ user }) => user)', change] as const,
    ),
  ),
  ...of('src/webhook/mail/notice-mails.ts', 'only for the types: each reader has a room', [
    'const { mails: limit, heldNotices } = room ?? { mails: 0, heldNotices: 0 }',
    'room ?? { mails: 0, heldNotices: 0 } -> (room)',
  ]),
  ...of(
    'src/webhook/mail/notice-worker.ts',
    'saves statements: without a notice no mail is written',
    ['return fresh.length > 0', 'fresh.length > 0 -> true'],
    ['return fresh.length > 0', '> -> >='],
  ),
  ...of(
    'src/webhook/mail/cell-notice.store.ts',
    'saves a statement that changes no row',
    ['if (notices.length > 0) await take(cell, keysOf(notices))', 'notices.length > 0 -> true'],
    ['if (notices.length > 0) await take(cell, keysOf(notices))', '> -> >='],
    ['if (notices.length === 0) return []', 'notices.length === 0 -> false'],
    ...['notices.length > 0 -> true', '> -> >='].map(
      (change) =>
        ['if (notices.length > 0) await endNotices(tx, { ...keysOf(notices), lasting, now })', change] as const,
    ),
  ),
  ...of(
    'src/webhook/mail/cell-notice.store.ts',
    'the same statement deletes the other rows before, and a deleted row is not updated',
    ['where n.ctid = any(array(select place from ended where is_lasting))', 'is_lasting -> true'],
  ),
  ...of('src/webhook/mail/mail-check.ts', 'only frees memory: a time that has passed keeps no mail waiting', [
    'awayUntilMs.delete(place.cell)',
    'awayUntilMs.delete(place.cell) -> ;',
  ]),
  ...of('src/webhook/pull/receipt.ts', 'no two rows that are settled have the same id', [
    'return a.id < b.id ? -1 : 1',
    '< -> <=',
  ]),
  ...of(
    'src/webhook/archive/archive.store.ts',
    'saves a statement that finds no account; one of both conditions ends the list',
    ['if (!last || found.length < ACCOUNTS) return', '!last -> false'],
    ['if (!last || found.length < ACCOUNTS) return', 'found.length < ACCOUNTS -> false'],
  ),
  ...of('src/webhook/archive/archive.store.ts', 'only for the types: the statement returns one row always', [
    'return rows[0]?.is_taken ?? false',
    'false -> true',
  ]),
  {
    path: 'src/webhook/archive/export-archive.ts',
    lineText: 'rows += file.rows',
    change: '+= -> -=',
    reason: 'only how many rows an interrupted export writes again: its end stores the manifest as well',
  },
]
