import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { eventNameOf, isChange, type RouteDeclaration } from '../../src/http/route/route.ts'
import type { ContractFixture } from '../contract/contract-fixture.ts'
import { type WatchedInvalidations, watchInvalidations } from '../harness/database/watched-invalidations.ts'
import { KNOWN_PAIRS, watchLockOrder } from '../harness/plan/lock-order.ts'
import type { RequestDatabase } from '../harness/plan/request-plans.ts'
import { type Measured, measureHeld } from '../harness/realtime/cached-caller.ts'
import { judgeWholeReads } from './known-whole-reads.ts'
import {
  FORMS,
  findRouteOf,
  type MakeRequest,
  prepareRequest,
  REQUESTS,
  ROUTES,
  startRequestFixture,
} from './route-requests.ts'

/** Statements and round trips of one successful request, `begin` and `commit` included. */
type Cost = readonly [statements: number, roundTrips: number]

/** A step of a request, and what it costs. */
type Step = readonly [what: string, ...Cost]

const READ: Step = ['reads', 1, 1]

/** Every change: the first round trip locks and reads what decides, the second one writes and records. */
const CHANGE: Step = ['begin and one statement; one that writes, records and answers, and commit', 4, 2]

/** The limit of sign-in and refresh: what it counts must outlive the request, whatever comes of that. */
const STRICT_LIMIT: Step = ['counts against the strict limit, which no rollback may undo', 1, 1]

/** The same where the operation does nothing outside its transaction: the count commits by itself before `begin`. */
const STRICT_LIMIT_BESIDE: Step = ['counts against the strict limit in the first round trip of the change', 1, 0]

/** A publication without a key: its statement is shared with those of concurrent requests, and is its own transaction. */
const PUBLICATION: Step = ['one statement', 1, 1]

const CONNECTION_HEALTH: Step = ['counts the certificates of connections that end; their refused sign-ins', 2, 2]

/** A change that locks and reads nothing: its closing statement is its own transaction. */
const ONE_WRITE: Step = ['one statement that writes, records and answers', 1, 1]

/** The state of a flow is spent before the provider is asked, so that a callback which arrives twice is answered once. */
const SPEND_FLOW: readonly Step[] = [
  ['reads the flow', 1, 1],
  ['spends the flow, which no rollback may undo', 1, 1],
]

/** Transactions of more than four statements, each with the reason. */
const POSTED_RESPONSE: Step = [
  'a transaction that notes the assertion, and keeps it if it is new and the flow is open',
  5,
  3,
]
const KNOWN_PERSON: Step = [
  'begin; locks and reads the identity; reads the user, whom it decides on; locks the user and reads its accounts, as every sign-in does; closes; commit',
  6,
  4,
]
const NEW_PERSON: Step = [
  'as of a known user, once in its life: registers user, account, membership and their events, which its session refers to',
  10,
  6,
]
const CODE_HOLDER: Step = [
  'begin; takes the code; reads its user; locks the user and reads its accounts, as every sign-in does; closes; commit',
  6,
  4,
]
const CODE_IDENTITY: Step = [
  'begin; takes the code; locks and reads the identity that it stands for; closes; commit',
  5,
  3,
]

const INVITATION: Step = [
  'begin; keeps the account; locks the roles; locks and counts the invitations of the account; replaces the open one; locks and counts the mails of the address; writes the mail; closes; commit',
  10,
  5,
]
const ACCEPTANCE: Step = [
  'begin; locks the invitation, its roles and its inviter; registers the user; closes; commit',
  9,
  6,
]

const SIGN_UP: Step = [
  'begin; uses the links of the address up; reads what the address is; registers the user; creates its account; closes; commit',
  9,
  5,
]

const MAIL_LOGIN: Step = [
  'begin; locks the user and counts the attempt; reads the user; reads the hash of its password; reads its factors; locks the user and reads its accounts, as every sign-in does; closes; commit',
  8,
  6,
]

/** A code is short: each attempt counts before it is looked at, whatever comes of the request. */
const CODE_ATTEMPT: Step = [
  'counts the attempt as failed, before its code is looked at: begin, lock, count, commit',
  4,
  2,
]

/** Second factors are proven seldom, and each step decides on what the one before locked. */
const SECOND_STEP: Step = [
  'begin; locks the user; counts the attempt at the challenge; reads the hash that it is bound to; reads the app; uses the code up; reads the user; locks the user and reads its accounts, as every sign-in does; closes; commit',
  10,
  7,
]
const CONFIRMATION: Step = [
  'begin; locks the user; reads the app; uses the code up; counts recovery codes; locks the session; closes; commit',
  8,
  5,
]
const STEP_UP: Step = [
  'begin; locks the user; reads the app; uses the code up; locks the session; closes; commit',
  7,
  4,
]
const FACTOR_REMOVAL: Step = ['begin; locks the user; removes the factor; closes; commit', 5, 2]
const REGISTRATION_OPTIONS: Step = ['begin; reads the user; reads its passkeys; closes; commit', 5, 3]
const REGISTRATION: Step = [
  'begin; locks the user; counts the attempt at the challenge; locks the user and counts its passkeys; inserts the new one; counts recovery codes; locks the session; closes; commit',
  10,
  6,
]
const PASSKEY_LOGIN: Step = [
  'begin; counts the attempt at the challenge; reads the passkey; locks its user; raises its counter; reads the user; locks the user and reads its accounts, as every sign-in does; closes; commit',
  9,
  6,
]
const FACTOR_OPTIONS: Step = ['begin; reads the challenge; reads the passkeys of its user; closes; commit', 5, 3]

const OF_FACTORS: readonly Step[] = [
  SECOND_STEP,
  CONFIRMATION,
  STEP_UP,
  FACTOR_REMOVAL,
  REGISTRATION_OPTIONS,
  REGISTRATION,
  PASSKEY_LOGIN,
  FACTOR_OPTIONS,
]

const DECISION: Step = [
  'begin; takes the question and reads the grant; writes the grant, whose id the tokens name; closes; commit',
  5,
  3,
]

/** The end of a grant or a client waits for exchanges under way before it ends their sessions. */
const END_OF_APP: Step = [
  'begin and one statement that locks; one that ends the sessions, with the one that writes, records and answers, and commit',
  5,
  2,
]

/** A bulk replay names its rows by filters. */
const SELECTION: Step = [
  'begin; limits how long a statement takes; reads the rows; ends the limit; closes; commit',
  6,
  2,
]
/** Opened access is ended by separate statements behind the lock: token families before their tokens. */
const END_OF_ACCESS: Step = [
  'begin and one statement that locks; one that ends what was opened, with the one that writes, records and answers, and commit',
  5,
  2,
]

/** Who administers the accounts of the user is read behind their locks and that of the user. */
const OWN_DELETION: Step = [
  'begin; locks the accounts that the user administers; locks the user; reads their other administrators; ends what was opened; closes; commit',
  7,
  4,
]
const TWO_MAILS: Step = [
  'begin; locks the user and counts its changes; replaces the change and writes the first mail; closes; commit',
  5,
  3,
]
const WITHDRAWAL: Step = ['begin; locks the user; ends the change, if there is one; closes; commit', 5, 3]
/** The failure count is decided behind the lock of the webhook. */
const ACKNOWLEDGEMENT: Step = ['begin; locks the webhook; reads the rows behind its lock; settles them; commit', 5, 4]

const EXTENSION: Step = ['begin; reads the webhook; reads the rows; extends those under their lease; commit', 5, 4]

/** The leases are committed once every delivery is signed. */
const LEASES: readonly Step[] = [
  ['reads the webhook', 1, 1],
  ['begin; leases; commit', 3, 2],
]

/** Requests that take more steps than `CHANGE`, with the reason. */
const NEW_CONNECTION: Step = ['begin; locks the account and counts; locks the roles; closes; commit', 5, 3]
const CLAIM: Step = [
  'begin; reads the connection; locks it and counts its domains; claims the domain; closes; commit',
  6,
  4,
]
const PROVEN_DOMAIN: Step = ['begin; locks the account and the connection; locks the domain; closes; commit', 6, 3]
const PROOF: Step = ['begin; locks the account and the connection; locks the domain; proves it; closes; commit', 7, 4]
const DOMAIN_END: Step = [
  'begin; locks the connection; locks the domain; ends what was opened by it, and closes; commit',
  6,
  3,
]
const OF_CONNECTIONS: readonly Step[] = [NEW_CONNECTION, CLAIM, PROVEN_DOMAIN, PROOF, DOMAIN_END]

const LONGER: readonly Step[] = [
  ...OF_CONNECTIONS,
  POSTED_RESPONSE,
  ACKNOWLEDGEMENT,
  EXTENSION,
  SELECTION,
  DECISION,
  END_OF_APP,
  END_OF_ACCESS,
  KNOWN_PERSON,
  NEW_PERSON,
  CODE_HOLDER,
  CODE_IDENTITY,
  INVITATION,
  ACCEPTANCE,
  OWN_DELETION,
  TWO_MAILS,
  WITHDRAWAL,
  SIGN_UP,
  MAIL_LOGIN,
  ...OF_FACTORS,
]

/** Requests that are neither one read nor one change: each with all its steps. */
const STEPS: Record<string, readonly Step[]> = {
  'webhook.pull': LEASES,
  'webhook.ack': [ACKNOWLEDGEMENT],
  'webhook.nack': [ACKNOWLEDGEMENT],
  'webhook.extend': [EXTENSION],
  'webhook.find-backlog': [
    ['reads the webhook', 1, 1],
    ['counts what waits', 1, 1],
  ],
  'connection.find-activity': [['reads the connection; reads its activity', 2, 2]],
  'login.local': [
    STRICT_LIMIT,
    ['counts the attempt as failed, before its password is looked at: begin, lock, count, commit', 4, 2],
    CHANGE,
  ],
  'login.factor': [STRICT_LIMIT, ['reads the challenge', 1, 1], CODE_ATTEMPT, SECOND_STEP],
  'totp-factor.create': [STRICT_LIMIT, CHANGE],
  'totp-factor.confirm': [STRICT_LIMIT, CODE_ATTEMPT, CONFIRMATION],
  'totp-factor.delete': [STRICT_LIMIT, FACTOR_REMOVAL],
  'recovery-code.renew': [STRICT_LIMIT, CHANGE],
  'session.step-up': [STRICT_LIMIT, CODE_ATTEMPT, STEP_UP],
  'passkey.begin': [STRICT_LIMIT, REGISTRATION_OPTIONS],
  'passkey.create': [STRICT_LIMIT, REGISTRATION],
  'passkey.delete': [STRICT_LIMIT, FACTOR_REMOVAL],
  'login.passkey-options': [STRICT_LIMIT, ONE_WRITE],
  'login.passkey': [STRICT_LIMIT, PASSKEY_LOGIN],
  'login.factor-options': [STRICT_LIMIT, FACTOR_OPTIONS],
  'session.step-up-options': [STRICT_LIMIT, CHANGE],
  'login.oauth-start': [STRICT_LIMIT, ONE_WRITE],
  'login.oauth-callback': [['reads the flow', 1, 1], ONE_WRITE],
  'login.oauth-form-callback': [ONE_WRITE],
  'login.saml-response': [STRICT_LIMIT, ['reads the connection and the flow', 2, 2], POSTED_RESPONSE],
  'login.oauth': [STRICT_LIMIT, ...SPEND_FLOW, KNOWN_PERSON],
  'login.oauth of a new user': [STRICT_LIMIT, ...SPEND_FLOW, NEW_PERSON],
  'login.code': [STRICT_LIMIT, CODE_HOLDER],
  'identity.link': [STRICT_LIMIT, ONE_WRITE],
  'identity.create': [STRICT_LIMIT, CODE_IDENTITY],
  'session.refresh': [STRICT_LIMIT_BESIDE, CHANGE],
  'sso.handshake': [STRICT_LIMIT_BESIDE, CHANGE],
  'sso.exchange': [STRICT_LIMIT_BESIDE, CHANGE],
  'oauth.exchange': [STRICT_LIMIT, CHANGE],
  'oauth-client.create': [ONE_WRITE],
  'oauth-client.delete': [END_OF_APP],
  'oauth-decision.create': [DECISION],
  'oauth-grant.delete': [END_OF_APP],
  'password.change': [
    STRICT_LIMIT,
    ['reads the address and the hash of the caller', 1, 1],
    ['counts the attempt as failed, before the current password is looked at: begin, lock, count, commit', 4, 2],
    END_OF_ACCESS,
  ],
  'sign-up.request': [STRICT_LIMIT, CHANGE],
  'sign-up.request for the address of a user': [STRICT_LIMIT, CHANGE],
  'login.sign-up': [
    STRICT_LIMIT,
    ['reads the sign-up of the link and what its address is, before the password hash is computed', 2, 2],
    SIGN_UP,
  ],
  'mail-login.request': [STRICT_LIMIT, CHANGE],
  'mail-login.request for an unknown address': [STRICT_LIMIT, CHANGE],
  'login.mail': [STRICT_LIMIT, ['reads the sign-in of the id', 1, 1], CODE_ATTEMPT, MAIL_LOGIN],
  'password.forgot': [STRICT_LIMIT, CHANGE],
  'password.forgot of an unknown address': [STRICT_LIMIT, CHANGE],
  'password.reset': [
    STRICT_LIMIT,
    ['reads the user of the link: the new password must not be its name', 1, 1],
    END_OF_ACCESS,
  ],
  'email.request-verification': [STRICT_LIMIT, CHANGE],
  'email.verify': [STRICT_LIMIT, CHANGE],
  'user.set-picture': [STRICT_LIMIT, CHANGE],
  'user.delete-own': [STRICT_LIMIT, OWN_DELETION],
  'user.request-email-change': [STRICT_LIMIT, TWO_MAILS],
  'user.cancel-email-change': [WITHDRAWAL],
  'user.confirm-email-change': [STRICT_LIMIT, CHANGE],
  'user.confirm-email-change of the second link': [STRICT_LIMIT, END_OF_ACCESS],
  'account-member.delete': [END_OF_ACCESS],
  'account-invitation.create': [INVITATION],
  'account-invitation.accept': [
    STRICT_LIMIT,
    ['reads the invitation and who has its address, before the password hash is computed', 2, 2],
    ACCEPTANCE,
  ],
  'account.delete': [END_OF_ACCESS],
  'account.delete with a member and a webhook': [END_OF_ACCESS],
  'connection.create': [NEW_CONNECTION],
  'connection.delete': [END_OF_ACCESS],
  'login.find-connection': [STRICT_LIMIT, CHANGE],
  'connection-domain.create': [CLAIM],
  'connection-domain.verify': [
    ['reads the domain: name servers are asked about an unproven one only', 1, 1],
    PROVEN_DOMAIN,
  ],
  'connection-domain.approve': [PROOF],
  'connection-domain.delete': [DOMAIN_END],
  'portal-session.open': [STRICT_LIMIT, CHANGE],
  'user.update of everything': [['reads the user: the new password must not be its name', 1, 1], END_OF_ACCESS],
  'user.disable': [END_OF_ACCESS],
  'user.disable of an administrator': [END_OF_ACCESS],
  'user.enable': [END_OF_ACCESS],
  'user.delete': [END_OF_ACCESS],
  'user.revoke-sessions': [END_OF_ACCESS],
  'user.remove-factors': [END_OF_ACCESS],
  'webhook.update with a URL': [['reads the URL: the name service is asked about another one only', 1, 1], CHANGE],
  'realtime.auth': [
    ['reads the account of the contract', 1, 1],
    ['stores the grant', 1, 1],
  ],
  'realtime.presence-auth': [
    ['reads the account of the contract', 1, 1],
    ['stores the grant', 1, 1],
    ['reads the user', 1, 1],
  ],
  'realtime.resume': [
    ['reads the account of the contract', 1, 1],
    ['reads the messages', 1, 1],
  ],
  // The session is stored: it was authorized before.
  'realtime.user-auth': [],
  'realtime.config': [],
  'realtime.publish-test': [ONE_WRITE],
  // No channel is occupied; otherwise one statement reads since when.
  'realtime-channel.find-all': [],
  // Nobody is in the channel; otherwise one statement reads since when.
  'realtime-channel.find-members': [],
  'realtime.webhook': [['records the events and applies them', 1, 1]],
  'health.connections': [CONNECTION_HEALTH],
  'health.find-all': [
    ['reads the facts of realtime publishing', 1, 1],
    ['reads those of outbound webhooks', 1, 1],
    ['reads those of provisioning', 1, 1],
    ['reads the keys of stored secrets', 1, 1],
    ['reads which machines have another time', 1, 1],
    CONNECTION_HEALTH,
  ],
  'webhook-dispatch.replay-all': [SELECTION],
  'event.publish without a key': [PUBLICATION],
  'event.publish with a URL': [PUBLICATION],
  'event.publish for an account without a key': [PUBLICATION],
  'event.publish of a tenant without a key': [PUBLICATION],
}

let fixture: ContractFixture
let database: RequestDatabase
let invalidations: WatchedInvalidations
/** Pairs of locks in another order than the written one, with a statement of each. */
const wrong = new Map<string, string>()
beforeAll(async () => {
  const started = await startRequestFixture()
  fixture = started.fixture
  database = started.database
  const functions = new Map(inject('databaseFunctions'))
  watchLockOrder(database.pool, functions, ({ pair, statement }) => wrong.set(pair, statement))
  invalidations = await watchInvalidations(fixture.app.database)
})
afterAll(async () => {
  await invalidations[Symbol.asyncDispose]()
  await fixture[Symbol.asyncDispose]()
})

/** Cost of one request, and the changes that it reports. */
type Outcome = Measured & Awaited<ReturnType<WatchedInvalidations['read']>>

/** Sends one request to a route and measures it. */
async function measure(route: RouteDeclaration, make: MakeRequest | undefined, more = ''): Promise<Outcome> {
  const { send, caller } = await prepareRequest(route, make, more)
  const measured = await measureHeld(fixture.app, caller, async () => {
    await invalidations.begin()
    return send()
  })
  const outcome = { ...measured, ...(await invalidations.read()) }
  return measured.isHeld ? outcome : measure(route, make, more)
}

/** The outcome of the request of each route and form: it is sent once, for all that is tested of it. */
const outcomes = new Map<string, Promise<Outcome>>()

function findOutcome(form: string): Promise<Outcome> {
  const make = form in FORMS ? FORMS[form] : REQUESTS[form]
  const outcome = outcomes.get(form) ?? measure(findRouteOf(form), make)
  outcomes.set(form, outcome)
  return outcome
}

/** Checks the cost of one request: a read, a change, or all the steps of a request that does more. */
async function checkCost(form: string): Promise<void> {
  const steps = STEPS[form] ?? [isChange(findRouteOf(form)) ? CHANGE : READ]
  const { traffic, texts } = await findOutcome(form)
  const sum = (pick: (step: Step) => number) => steps.reduce((total, step) => total + pick(step), 0)
  const expected = { statements: sum((step) => step[1]), roundTrips: sum((step) => step[2]) }
  expect(traffic, [...steps.map(([what]) => what), ...texts].join('\n')).toEqual(expected)
}

test('every route of the tree has its request here, and nothing else has', () => {
  expect(Object.keys(REQUESTS)).toEqual(ROUTES.map(eventNameOf))
})

test.each(ROUTES.map(eventNameOf))('%s costs what its steps cost', checkCost)

test.each(Object.keys(FORMS))('the form %s costs no more than its steps', checkCost)

const CHANGES = Object.keys({ ...REQUESTS, ...FORMS }).filter((form) => isChange(findRouteOf(form)))

test.each(CHANGES)(
  'the invalidations of %s reach the process that makes the change with its last statement',
  async (form) => {
    expect((await findOutcome(form)).missing).toEqual([])
  },
)

test('the changes of all routes together send every kind of note', async () => {
  expect(CHANGES).toEqual(expect.arrayContaining(ROUTES.filter(isChange).map(eventNameOf)))
  const sent: string[] = []
  for (const form of CHANGES) sent.push(...(await findOutcome(form)).sent)
  const kinds = new Set(sent.map((note) => note.split(':')[0]))
  expect([...kinds].sort()).toEqual(['*', 'c', 'k', 'l', 'p', 'r', 's', 't', 'u', 'v'])
})

const LISTS = ROUTES.filter(({ list }) => list)

test.each(LISTS.map((route) => [eventNameOf(route), route] as const))(
  '%s counts its rows with one statement more',
  async (event, route) => {
    const { traffic, texts } = await measure(route, REQUESTS[event], '?count=true')
    expect(traffic, texts.join('\n')).toEqual({ statements: 2, roundTrips: 2 })
  },
)

test('no statement of these requests reads through what others have stored, but the known ones', async () => {
  for (const form of Object.keys({ ...REQUESTS, ...FORMS })) await findOutcome(form)
  const reads = await database.listWholeReads()
  expect(judgeWholeReads(reads)).toEqual({ unknown: [], unused: [] })
})

/** Known pairs that none of the requests takes: of parallel requests, and of workers. */
const OF_RACES = [
  'account_invitation > user',
  'oauth_state > session by end_grant',
  'oauth_state > oauthGrant by end_grant',
  'address_proof > session',
]
const OF_WORKERS = ['webhook_dispatch_ended > webhook_dispatch_open', 'provisioning_job > user']

test('every request of the service takes its locks in the written order', async () => {
  for (const form of Object.keys({ ...REQUESTS, ...FORMS })) await findOutcome(form)
  expect(Object.fromEntries([...wrong].filter(([pair]) => !(pair in KNOWN_PAIRS)))).toEqual({})
  expect(Object.keys(KNOWN_PAIRS).filter((pair) => !wrong.has(pair))).toEqual([...OF_RACES, ...OF_WORKERS])
})

test('no transaction but those of providers, codes, decisions, ends of apps, connections, invitations, sign-ups, sign-ins by mail, bulk replays and second factors has more than four statements in two round trips', () => {
  const steps = [READ, CHANGE, ...Object.values(STEPS).flat()]
  const long = steps.filter(([, statements, roundTrips]) => statements > 4 || roundTrips > 2)
  expect(new Set(long)).toEqual(new Set(LONGER))
})

test('each request with steps of its own is measured', () => {
  const measured = [...Object.keys(REQUESTS), ...Object.keys(FORMS)]
  expect(Object.keys(STEPS).filter((form) => !measured.includes(form))).toEqual([])
})
