/** A mutant that no test can or needs to notice, and why. */
export interface Explained {
  path: string
  /** The line where it begins, without the blanks around it. */
  lineText: string
  /** As the tool prints it. */
  change: string
  reason: string
}

/** The survivors that are explained. `npm run mutate` leaves them out; a test looks for each in its file. */
export const EXPLAINED: readonly Explained[] = [
  ...["'running', -> (nothing)", ", 'paused' -> (nothing)", ", 'failed' -> (nothing)"].map((change) => ({
    path: 'src/provisioning/job/job.store.ts',
    lineText: "on conflict (target) where status in ('running', 'paused', 'failed') do nothing",
    change,
    reason: 'the condition only finds the partial index, and a narrower one finds the same',
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
    lineText: 'where secret_encrypted is not null and not starts_with(secret_encrypted, $prefix)',
    change: 'secret_encrypted is not null -> true',
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
    path: 'src/identity/sign-in/passkey/passkey.store.ts',
    lineText: 'where document_id = $id and (counter < $counter or (counter = 0 and $counter = 0))`)',
    change: '$counter = 0 -> true',
    reason: 'a signature counter is never negative, and one above 0 has grown from 0',
  },
  {
    path: 'src/identity/sso/exchange.ts',
    lineText: "if (!found || reason) return { kind: 'refused', reason: reason ?? 'session_unknown', handshake }",
    change: '!found -> false',
    reason: 'only for the types: what was not found has a reason',
  },
  {
    path: 'src/identity/sso/exchange.ts',
    lineText: "if (!found || reason) return { kind: 'refused', reason: reason ?? 'session_unknown', handshake }",
    change: "reason ?? 'session_unknown' -> (reason)",
    reason: 'only for the types: what was not found has a reason',
  },
  {
    path: 'src/identity/throttle/login-throttle.ts',
    lineText: 'if (!until || !turn) return until',
    change: '!turn -> false',
    reason: 'only for the types: undefined is neither before now nor before the end of the wait',
  },
  {
    path: 'src/identity/throttle/login-throttle.ts',
    lineText: 'if (!until || !turn) return until',
    change: '!until -> false',
    reason: 'only for the types: no turn is before undefined, which is then the answer as well',
  },
  {
    path: 'src/identity/throttle/login-throttle.store.ts',
    lineText: 'const emailHash = rows.find((row) => row.emailHash.length > 0)?.emailHash ?? key.emailHash',
    change:
      'rows.find((row) => row.emailHash.length > 0)?.emailHash ?? key.emailHash -> (rows.find((row) => row.emailHash.length > 0)?.emailHash)',
    reason: 'only for the types: the statement returns a row of the user or its address for every attempt',
  },
  {
    path: 'src/identity/sign-in/outcome/sign-in.ts',
    lineText: "if (issued.refreshToken === null) throw new Error('the session of a sign-in has no refresh token')",
    change: 'issued.refreshToken === null -> false',
    reason: 'only for the types: a session without a parent has a refresh token',
  },
  {
    path: 'src/identity/social-login/user/user.ts',
    lineText: "accountScope: resource === 'account' ? 'account' : 'none',",
    change: "resource === 'account' -> true",
    reason: 'the scope only keeps the account of an event, and the event of a user has none here',
  },
  {
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: 'const lock = request.hasPeers ? shareClaims : undefined',
    change: 'request.hasPeers -> true',
    reason: 'without peers only costs a lock that nobody else takes',
  },
  {
    path: 'src/oauth/claims/asked-claims.ts',
    lineText: "if (typeof text !== 'string') return {}",
    change: "typeof text !== 'string' -> false",
    reason: 'saves an exception: what is no text is no JSON of an object either',
  },
  {
    path: 'src/oauth/consent/sign-in-demand.ts',
    lineText: 'const claims = segment && parseClaims(segment)',
    change: 'segment -> true',
    reason: 'no bytes are no JSON, which names nobody either',
  },
  {
    path: 'src/identity/caller/authenticate.ts',
    lineText: 'const isUseDue = found.lastUsedAt === null || found.lastUsedAt <= before',
    change: 'found.lastUsedAt === null -> false',
    reason: 'only for the types: null counts as 0, which is before every instant',
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
  {
    path: 'src/identity/password/password.ts',
    lineText: 'return timingSafeEqual(tag, expected.tag) && parsed !== undefined',
    change: 'parsed !== undefined -> true',
    reason: 'what no password is stored for is compared with 32 zero bytes, which no hash is',
  },
  {
    path: 'src/webhook/delivery/incident.ts',
    lineText: 'const still = new Set(subjects.length > 0 ? await find(subjects) : [])',
    change: '> -> >=',
    reason: 'saves a statement that finds nothing',
  },
  ...['input.subjects.length > 0 -> true', '> -> >='].map((change) => ({
    path: 'src/delivery/incident/alert.ts',
    lineText: 'if (input.subjects.length > 0) await resolveIncidents(db, input)',
    change,
    reason: 'saves a statement that changes no row',
  })),
  {
    path: 'src/identity/social-login/user/user.ts',
    lineText: 'linked || identity.email === null || !identity.isEmailVerified',
    change: 'linked -> false',
    reason: 'saves a statement: the user of a known identity decides before the owner of the address',
  },
  {
    path: 'src/identity/social-login/user/user.ts',
    lineText: 'linked || identity.email === null || !identity.isEmailVerified',
    change: '!identity.isEmailVerified -> false',
    reason: 'saves a statement: an unverified address is refused before its owner is looked at',
  },
  {
    path: 'src/identity/social-login/user/user.ts',
    lineText: 'linked || identity.email === null || !identity.isEmailVerified',
    change: 'identity.email === null -> false',
    reason: 'only for the types: no user has the address null',
  },
  {
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: 'where d.webhook = v.webhook and d.next_attempt_at is not null',
    change: 'd.next_attempt_at is not null -> true',
    reason: 'null sorts last: the first row waits, or none does; the condition is that of the index',
  },
  {
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: `where d.is_test and d.next_attempt_at is not null order by d.next_attempt_at limit $\{TESTS_AT_ONCE}`,
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
  ...['!found?.userId -> false', "reason ?? 'challenge_unknown' -> (reason)"].map((change) => ({
    path: 'src/identity/sign-in/second-factor/factor-login.ts',
    lineText: "if (reason || !found?.userId) return { kind: 'refused', reason: reason ?? 'challenge_unknown' }",
    change,
    reason: 'only for the types: a challenge of a sign-in has a user, and what was not found has a reason',
  })),
  ...['!found?.userId -> false', "reason ?? 'challenge_unknown' -> (reason)"].map((change) => ({
    path: 'src/identity/sign-in/second-factor/factor-login.ts',
    lineText: "if (reason || !found?.userId) return { problem: buildFactorFailed(reason ?? 'challenge_unknown') }",
    change,
    reason: 'only for the types: a challenge of a sign-in has a user, and what was not found has a reason',
  })),
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
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: 'where due_at is not null and (not is_live or visit_at <> greatest(due_at, served_at))',
    change: '(not is_live or visit_at <> greatest(due_at, served_at)) -> true',
    reason: 'only writes the place of a webhook again that has not changed',
  },
  {
    path: 'src/identity/access/delegation.ts',
    lineText: "const where = account === null ? '' : ` in the account ${account}`",
    change: 'account === null -> false',
    reason: 'only the text of a refusal',
  },
]
