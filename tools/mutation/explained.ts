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
    path: 'src/delivery/dispatcher.ts',
    lineText: "if (works.length > 0) deps.onDispatcherPoint?.('after-claim')",
    change: 'works.length > 0 -> true',
    reason: 'only the point at which crash tests stop a process',
  },
  {
    path: 'src/delivery/dispatcher.ts',
    lineText: "if (works.length > 0) deps.onDispatcherPoint?.('after-claim')",
    change: 'works.length > 0 -> false',
    reason: 'only the point at which crash tests stop a process',
  },
  {
    path: 'src/delivery/dispatcher.ts',
    lineText: 'if (isScarce || (mayWait && isFull && hasRoom())) notify()',
    change: 'hasRoom() -> true',
    reason: 'the round that this begins asks for room again before it claims',
  },
  {
    path: 'src/delivery/dispatcher.ts',
    lineText: 'return inFlight === 0 || fastSlots >= Math.max(1, policy.concurrency / 8)',
    change: 'inFlight === 0 -> false',
    reason: 'with nothing in flight all slots are free, which is at least an eighth',
  },
  {
    path: 'src/webhook/delivery/claim.store.ts',
    lineText: 'if (isAll || visited >= VISITED.most) break',
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
    lineText: "await writeAtEnd(db, { parts, ...(isMoved && { notes: 'r' }) })",
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
]
