import { EXPLAINED_OF_CARRIAGE } from './explained/carriage.ts'
import { EXPLAINED_OF_RESULTS } from './explained/webhook.ts'
import { EXPLAINED_OF_DELIVERY } from './explained-delivery.ts'
import { EXPLAINED_OF_IDENTITY } from './explained-identity.ts'
import { EXPLAINED_OF_OAUTH } from './explained-oauth.ts'
import { EXPLAINED_OF_WEBHOOK } from './explained-webhook.ts'

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
  ...EXPLAINED_OF_DELIVERY,
  ...EXPLAINED_OF_OAUTH,
  ...EXPLAINED_OF_IDENTITY,
  ...EXPLAINED_OF_WEBHOOK,
  ...EXPLAINED_OF_RESULTS,
  ...EXPLAINED_OF_CARRIAGE,
  {
    path: 'src/identity/connection/entry/entry.ts',
    lineText:
      'const administrator = candidate.asked.find(({ name, isSystem }) => isSystem && name === ACCOUNT_ADMIN_ROLE)?.id',
    change: 'isSystem -> true',
    reason: 'no other role has the name of a system role, for names are unique and a system role is never renamed',
  },
  {
    path: 'src/identity/sign-in/local/local-login.ts',
    lineText: 'if (passwordHash === null) return undefined',
    change: 'passwordHash === null -> false',
    reason: 'only for the types: no password is correct for a user without one',
  },
  {
    path: 'src/identity/password/common-password.ts',
    lineText: 'const lengths = [1, 2, 3, 4, ...(text.length % 2 === 0 ? [text.length / 2] : [])]',
    change: 'text.length % 2 === 0 -> true',
    reason: 'at half of an odd length there is no character, so that none is repeated',
  },
  {
    path: 'src/identity/social-login/completion.ts',
    lineText: 'if (connection !== null && proves !== null) {',
    change: 'connection !== null -> true',
    reason: 'only for the types: a flow that proves a session is of a connection',
  },
  {
    path: 'src/identity/social-login/completion.ts',
    lineText: 'const byConnection = connection && (await findSessionRule(tx, { connection, now }))',
    change: 'connection -> true',
    reason: 'only costs a statement: no connection has the id null',
  },
  ...['begunAt -> true', 'byConnection -> true'].map((change) => ({
    path: 'src/identity/social-login/completion.ts',
    lineText: 'const rest = { ...(begunAt && { begunAt }), ...(byConnection && { byConnection }) }',
    change,
    reason: 'only for the types: a member that is null or undefined counts as absent',
  })),
  {
    path: 'src/identity/sign-in/second-factor/second-factor.ts',
    lineText: 'const isTaken = hash !== undefined && (await takeRecoveryCode(tx, { userId, hash, now }))',
    change: 'hash !== undefined -> true',
    reason: 'only costs a statement: no row has a hash that is null',
  },
  ...["'running', -> (nothing)", ", 'paused' -> (nothing)", ", 'failed' -> (nothing)"].map((change) => ({
    path: 'src/provisioning/job/job.store.ts',
    lineText: "on conflict (target) where status in ('running', 'paused', 'failed') do nothing",
    change,
    reason: 'the condition only finds the partial index, and a narrower one finds the same',
  })),
  {
    path: 'src/identity/sign-in/passkey/passkey.store.ts',
    lineText: 'where document_id = $id and (counter < $counter or (counter = 0 and $counter = 0))`)',
    change: '$counter = 0 -> true',
    reason: 'a signature counter is never negative, and one above 0 has grown from 0',
  },
  {
    path: 'src/identity/user/password/password-reset.ts',
    lineText: 'const to = user?.email ?? email',
    change: 'user?.email ?? email -> (user?.email)',
    reason: 'nothing is written for an unknown address',
  },
  {
    path: 'src/identity/social-login/flow/login-code.store.ts',
    lineText: 'identity: isLink ? JSON.stringify(code.identity) : null,',
    change: 'isLink -> true',
    reason: 'only for the types: a code of a sign-in has no identity, and JSON of none is none',
  },
  {
    path: 'src/identity/account/invitation/invitation-acceptance.ts',
    lineText: 'const invitation = await findOpenInvitation(db, { tokenHash: hashProofToken(token), now, lock: false })',
    change: 'false -> true',
    reason: 'outside of a transaction a lock ends with its statement',
  },
  {
    path: 'src/identity/connection/entry/decide-entry.ts',
    lineText:
      'const governed = new Set([...groupRoles.map(({ role }) => role), ...(defaultRole === null ? [] : [defaultRole])])',
    change: 'defaultRole === null -> false',
    reason: 'only for the types: no role that a member has is null',
  },
  {
    path: 'src/identity/session/token/json-keys.ts',
    lineText: 'for (let at = 0; at < json.length; at += 1) {',
    change: '< -> <=',
    reason: 'behind the end of the text there is no character',
  },
  {
    path: 'src/identity/user/user.ts',
    lineText: "await deleteProofTokens(db, { userId: user.id, purpose: 'reset' })",
    change: "await deleteProofTokens(db, { userId: user.id, purpose: 'reset' }) -> ;",
    reason: 'the end of the access, which comes before, deletes them as well',
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
  ...['seconds === undefined -> false', 'signature === undefined -> false'].map((change) => ({
    path: 'src/identity/social-login/flow/flow-state.ts',
    lineText:
      "if (random === undefined || seconds === undefined || signature === undefined) return { reason: 'state_forged' }",
    change,
    reason: 'only for the types: the pattern finds all of the parts or none',
  })),
  ...['ids.length > 0 -> true', '> -> >='].map((change) => ({
    path: 'src/identity/session/list/session-list.store.ts',
    lineText: `if (ids.length > 0) await endLocked(db, { ids, now }, { invalidations: \`u:${'$'}{userId}\` })`,
    change,
    reason: 'saves a statement that changes no row',
  })),
  {
    path: 'src/identity/throttle/login-throttle.store.ts',
    lineText: 'offset 0 for update) l',
    change: 'for update -> (nothing)',
    reason: 'the insert locks the same rows, in the same order, before it adds to them',
  },
  {
    path: 'src/identity/throttle/login-throttle.store.ts',
    lineText: 'delete from login_throttle where email_hash = any($emailHashes) and (email_hash, address_hash) in (',
    change: 'email_hash = any($emailHashes) -> true',
    reason: 'only has the plan find the rows by their index: those of the other condition have these addresses',
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
    path: 'src/identity/session/token/session-token.ts',
    lineText: 'exp * 1000 <= LAST_INSTANT.getTime()',
    change: '<= -> <',
    reason: 'an end is a whole second, and the last instant is none',
  },
  {
    path: 'src/identity/caller/authenticate.ts',
    lineText: 'const isUseDue = found.lastUsedAt === null || found.lastUsedAt <= before',
    change: 'found.lastUsedAt === null -> false',
    reason: 'only for the types: null counts as 0, which is before every instant',
  },
  {
    path: 'src/identity/password/password.ts',
    lineText: 'return timingSafeEqual(tag, expected.tag) && parsed !== undefined',
    change: 'parsed !== undefined -> true',
    reason: 'what no password is stored for is compared with 32 zero bytes, which no hash is',
  },
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
  ...[
    "if (reason || !found?.userId) return { kind: 'refused', reason: reason ?? 'challenge_unknown' }",
    "if (reason || !found?.userId) return { problem: buildFactorFailed(reason ?? 'challenge_unknown') }",
  ].flatMap((lineText) =>
    ['!found?.userId -> false', "reason ?? 'challenge_unknown' -> (reason)"].map((change) => ({
      path: 'src/identity/sign-in/second-factor/factor-login.ts',
      lineText,
      change,
      reason: 'only for the types: a challenge of a sign-in has a user, and what was not found has a reason',
    })),
  ),
  {
    path: 'src/identity/access/delegation.ts',
    lineText: `const where = account === null ? '' : \` in the account $\{account}\``,
    change: 'account === null -> false',
    reason: 'only the text of a refusal',
  },
  {
    path: 'src/identity/access/role.ts',
    lineText: 'const isFree = role.isSystem && role.name === MEMBER_ROLE && accounts.length === 0',
    change: 'role.isSystem -> true',
    reason: 'no other role has the name of a system role, for names are unique and a system role is never renamed',
  },
  {
    path: 'src/identity/throttle/login-throttle.ts',
    lineText: 'return turn < until ? turn : until',
    change: '< -> <=',
    reason: 'of two equal instants either one is the earlier one',
  },
  {
    path: 'src/identity/throttle/login-throttle.ts',
    lineText: 'const waitUntil = waitMs === 0 ? null : new Date(now.getTime() + waitMs)',
    change: 'waitMs === 0 -> false',
    reason: 'a wait that ends now is none',
  },
  {
    path: 'src/identity/password/password.ts',
    lineText: 'const HASHES_AT_ONCE = Math.max(1, availableParallelism() - 1)',
    change: '- -> +',
    reason: 'only how many hashes run at once, which depends on the machine',
  },
  {
    path: 'src/identity/sign-in/outcome/redirect-allow-list.ts',
    lineText: 'while (end < shorter - start && text.at(-1 - end) === other.at(-1 - end)) end += 1',
    change: '- -> +',
    reason: 'only which entry a refusal suggests',
  },
  {
    path: 'src/identity/portal/portal-session.ts',
    lineText: 'return keyExpiresAt !== null && keyExpiresAt < end ? keyExpiresAt : end',
    change: '< -> <=',
    reason: 'of two equal instants either one is the earlier one',
  },
  {
    path: 'src/identity/user/password/administrator.ts',
    lineText: "if (!(error instanceof Problem) || error.code !== 'conflict') throw error",
    change: '!(error instanceof Problem) -> false',
    reason: 'only for the types: no other error has this code',
  },
  {
    path: 'src/identity/social-login/social-login.ts',
    lineText:
      "if (name !== null && 'hash' in state) await keepPostedName(db, { stateHash: state.hash, provider, name })",
    change: 'name !== null -> true',
    reason: 'saves a statement: a provider posts once, and no name is what a flow has before',
  },
]
