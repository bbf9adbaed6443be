import type { AccountId, UserId } from '../../base/id.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, type SamplePlan, type SampleRows } from './sample-plan.ts'

/** Names of the accounts, with the first part of their domains. Domains end in `.example`, which has no hosts (RFC 6761). */
const ACCOUNTS = [
  ['Alder & Finch', 'alder-finch'],
  ['Birchwood Energy', 'birchwood'],
  ['Copperline Freight', 'copperline'],
  ['Dovetail Furniture', 'dovetail'],
  ['Evergreen Dental', 'evergreen'],
  ['Fjord Outfitters', 'fjord'],
  ['Granite Insurance', 'granite'],
  ['Harbor Coffee', 'harbor'],
  ['Ivory Music School', 'ivory'],
  ['Juniper Travel', 'juniper'],
  ['Kestrel Drones', 'kestrel'],
  ['Lighthouse Books', 'lighthouse'],
] as const

const FIRST_NAMES = [
  ...['Amara', 'Ben', 'Carla', 'Diego', 'Elif', 'Farid', 'Greta', 'Hana', 'Ivo', 'Jonas', 'Keiko', 'Lena', 'Mateo'],
  ...['Nadia', 'Oskar', 'Priya', 'Quentin', 'Rosa', 'Sven', 'Tariq', 'Uma', 'Viktor', 'Wanda', 'Xenia', 'Yusuf', 'Zoe'],
]

const LAST_NAMES = [
  ...['Adler', 'Bauer', 'Costa', 'Dahl', 'Eriksen', 'Fischer', 'Gomez', 'Haas', 'Ito', 'Jensen', 'Klein', 'Lopez'],
  ...['Meyer', 'Novak', 'Okafor', 'Petrov', 'Quinn', 'Rossi', 'Silva', 'Tanaka', 'Ueda', 'Vogel', 'Weber', 'Young'],
]

const AGENTS = [
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
  'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1',
]

/** An account of the sample, with who acts in it. */
export interface SampleAccount {
  id: AccountId
  slug: string
  members: SampleUser[]
  /** Id of the API key of its backend. */
  apiKey: string
}

/** A user of the sample. */
export interface SampleUser {
  id: UserId
  email: string
  name: string
  isActived: boolean
  createdAt: Date
  /** The network address of its sign-ins, of a range for documentation (RFC 5737). */
  address: string
  sessions: { id: string; at: Date }[]
}

/** Builds accounts with members and roles, their keys, and the sessions of users. */
export function buildUsers(plan: SamplePlan): { rows: SampleRows; accounts: SampleAccount[] } {
  const { dice, idOf, before } = plan
  const rows = {
    account: [],
    user: [],
    user_role: [],
    account_member: [],
    account_member_role: [],
    session: [],
    api_key: [],
  } satisfies SampleRows as Required<Pick<SampleRows, UsersTable>>
  let users = 0
  const accounts = ACCOUNTS.map(([name, slug], number): SampleAccount => {
    const id = idOf('account', number)
    const createdAt = before((60 + 11 * number) * DAY_MS + dice.between(0, 20) * HOUR_MS)
    rows.account.push({
      ...{ document_id: id, name, created_by: plan.administrator, updated_by: plan.administrator },
      ...{ created_at: createdAt, updated_at: createdAt },
    })
    const members = Array.from({ length: dice.between(3, 7) }, (_, place) => {
      const user = addUser(plan, rows, { number: users, slug, joinedAt: createdAt })
      users += 1
      addMember(plan, rows, { user, account: id, place, number: users })
      return user
    })
    return { id, slug, members, apiKey: addKey(plan, rows, { number, account: id, owner: members[0]!, createdAt }) }
  })
  return { rows, accounts }
}

type UsersTable = 'account' | 'user' | 'user_role' | 'account_member' | 'account_member_role' | 'session' | 'api_key'
type UsersRows = Required<Pick<SampleRows, UsersTable>>

function addUser(
  plan: SamplePlan,
  rows: UsersRows,
  { number, slug, joinedAt }: { number: number; slug: string; joinedAt: Date },
): SampleUser {
  const { dice, idOf, now } = plan
  const [first, last] = [FIRST_NAMES[number % FIRST_NAMES.length]!, LAST_NAMES[(number * 7) % LAST_NAMES.length]!]
  const age = now.getTime() - joinedAt.getTime()
  const createdAt = new Date(joinedAt.getTime() + Math.floor(dice.next() * (age - 35 * DAY_MS)))
  const user = {
    ...{ id: idOf('user', number), email: `${first}.${last}@${slug}.example`.toLowerCase(), name: `${first} ${last}` },
    // One in seventeen was disabled: its last sign-in is that of before.
    ...{ isActived: number % 17 !== 11, createdAt, address: `203.0.113.${1 + (number % 250)}`, sessions: [] },
  } satisfies SampleUser
  const updatedAt = user.isActived ? createdAt : plan.before(dice.between(2, 20) * DAY_MS)
  rows.user.push({
    ...{ document_id: user.id, email: user.email, name: user.name, is_actived: user.isActived },
    email_verified_at: number % 9 === 4 ? null : new Date(createdAt.getTime() + 5 * MINUTE_MS),
    ...{ created_at: createdAt, updated_at: updatedAt, access_ended_at: user.isActived ? null : updatedAt },
  })
  const role = plan.roles.get('member')
  if (role) rows.user_role.push({ user: user.id, role, created_at: createdAt })
  addSessions(plan, rows, { user, number, endedAt: user.isActived ? undefined : updatedAt })
  return user
}

/** Sessions of the month: those of before yesterday have ended, by their expiry or a sign-out. */
function addSessions(
  plan: SamplePlan,
  rows: UsersRows,
  { user, number, endedAt }: { user: SampleUser; number: number; endedAt: Date | undefined },
): void {
  const { dice, idOf } = plan
  const agent = AGENTS[number % AGENTS.length]!
  const latest = endedAt?.getTime() ?? plan.now.getTime()
  const times = Array.from({ length: dice.between(2, 6) }, () => latest - (0.02 + dice.next() * 25) * DAY_MS).sort()
  times.forEach((time, place) => {
    const at = new Date(Math.round(time))
    const id = idOf('session', number * 10 + place)
    const isSignedOut = endedAt !== undefined || dice.chance(0.4)
    const lastUsedMs = Math.min(at.getTime() + dice.between(5, 600) * MINUTE_MS, latest)
    user.sessions.push({ id, at })
    rows.session.push({
      ...{ document_id: id, user: user.id, address: user.address, user_agent: agent, amr: ['pwd'] },
      ...{ expires_at: new Date(at.getTime() + 7 * DAY_MS), revoked_at: isSignedOut ? new Date(lastUsedMs) : null },
      ...{ created_at: at, updated_at: new Date(lastUsedMs), last_used_at: new Date(lastUsedMs), auth_time: at },
    })
  })
}

/** The first of an account administers it, the second develops, the others read. */
function addMember(
  plan: SamplePlan,
  rows: UsersRows,
  { user, account, place, number }: { user: SampleUser; account: AccountId; place: number; number: number },
): void {
  const member = plan.idOf('account member', number)
  const { createdAt } = user
  rows.account_member.push({
    ...{ document_id: member, account, user: user.id, created_at: createdAt, updated_at: createdAt },
  })
  const role = plan.roles.get(['account-admin', 'account-developer'][place] ?? 'account-viewer')
  if (role) rows.account_member_role.push({ member, role, created_at: createdAt })
}

function addKey(
  plan: SamplePlan,
  rows: UsersRows,
  { number, account, owner, createdAt }: { number: number; account: AccountId; owner: SampleUser; createdAt: Date },
): string {
  const id = plan.idOf('api key', number)
  rows.api_key.push({
    ...{ document_id: id, user: owner.id, account, name: 'Order service', permissions: ['event:publish'] },
    // The hash of unknown bytes: no token matches the key.
    ...{ token_hash: plan.random.bytes(32), hint: `sbx_${plan.random.bytes(3).toString('base64url')}…` },
    ...{
      created_at: createdAt,
      updated_at: createdAt,
      last_used_at: plan.before(plan.dice.between(1, 90) * MINUTE_MS),
    },
    // In two accounts the key was revoked and replaced by another.
    revoked_at: number % 6 === 5 ? plan.before(12 * HOUR_MS) : null,
  })
  return id
}
