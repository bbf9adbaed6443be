import type { AccountId, IdMaker } from '../../../base/id.ts'
import type { Random } from '../../../base/random.ts'
import { invalidField, notFound, Problem } from '../../../http/problem/problem.ts'
import type { RowChange } from '../../../http/route/row-route.ts'
import { type Caller, includesAccount } from '../../../http/shape/caller.ts'
import type { ResolveTxt } from '../../../outbound/guard/dns-text.ts'
import { type Database, isUniqueViolation } from '../../../postgres/statement/database.ts'
import type { AccountTarget } from '../../account/account.store.ts'
import { endClosedAccess, endConnectionAccess } from '../../connected/connected-user.ts'
import { checkMayConnect, loadConnection } from '../connection.ts'
import {
  type ConnectionDomainRecord,
  countDomainsOf,
  deleteConnectionDomainRow,
  findConnectionDomain,
  findConnectionOfDomain,
  insertConnectionDomain,
  lockConnectionDomain,
  markVerified,
  noteCheck,
} from './connection-domain.store.ts'
import { challengeNameOf, domainOf, readDomain } from './domain-name.ts'

/** Maximum number of domains of one connection, proven or not. */
const DOMAINS_LIMIT = 50

const CLAIM_LIFETIME_MS = 14 * 24 * 3_600_000

/** Least time between two look-ups for one domain. */
const CHECK_INTERVAL_MS = 10_000

/** Dependencies of the operations on domains. */
export interface ConnectionDomainDeps {
  ids: IdMaker
  random: Random
  resolveTxt: ResolveTxt
}

interface DomainTarget {
  target: AccountTarget
  connection: string
  id: string
}

/** The domain of a path. Throws 404, also for one of another connection or account. */
export async function loadConnectionDomain(
  db: Database,
  { target, connection, id }: DomainTarget,
  { lock = false }: { lock?: boolean } = {},
): Promise<ConnectionDomainRecord> {
  const isReached = includesAccount(target.scope, target.id as AccountId)
  const found = isReached ? await (lock ? lockConnectionDomain : findConnectionDomain)(db, { id }) : undefined
  if (!found || found.account !== target.id || found.connection !== connection) throw notFound('domain')
  return found
}

const isExpired = ({ expiresAt }: ConnectionDomainRecord, now: Date) => expiresAt !== null && expiresAt <= now

/** Claims a domain for a connection. Throws 404, 403, 422 for a text that is no domain, 409. */
export async function addConnectionDomain(
  deps: ConnectionDomainDeps,
  db: Database,
  input: { target: AccountTarget; connection: string; domain: string; caller: Caller; now: Date },
): Promise<ConnectionDomainRecord> {
  const { target, connection: id, caller, now } = input
  const connection = await loadConnection(db, { target, id })
  const count = await countDomainsOf(db, id)
  if (count === undefined) throw notFound('connection')
  checkMayConnect(caller, connection.account)
  const domain = readDomain(input.domain)
  if (domain === undefined)
    throw invalidField(
      'domain',
      'domain_invalid',
      'must be a domain of e-mail addresses, without a wildcard: example.com',
    )
  if (count >= DOMAINS_LIMIT)
    throw new Problem('limit_reached', `A connection has at most ${DOMAINS_LIMIT} domains. Remove one first.`)
  const added = await insertConnectionDomain(db, {
    id: deps.ids.next<'connection domain'>(),
    connection: connection.id,
    account: connection.account,
    domain,
    token: deps.random.bytes(24).toString('base64url'),
    expiresAt: new Date(now.getTime() + CLAIM_LIFETIME_MS),
    now,
  })
  if (!added) throw new Problem('conflict', 'The connection has this domain already.')
  return added
}

/** Looks up the record, outside any transaction: name servers take seconds. Throws 404, 429 within ten seconds. */
export async function lookForProof(
  { resolveTxt }: Pick<ConnectionDomainDeps, 'resolveTxt'>,
  db: Database,
  { now, ...path }: DomainTarget & { now: Date },
): Promise<{ isFound: boolean }> {
  const found = await loadConnectionDomain(db, path)
  const { id, domain, token } = found
  if (isExpired(found, now)) throw notFound('domain')
  if (found.verifiedAt !== null) return { isFound: true }
  const before = new Date(now.getTime() - CHECK_INTERVAL_MS)
  if (!(await noteCheck(db, { id, before, now })))
    throw new Problem('rate_limited', 'This domain was looked up just now. Wait ten seconds.', {
      headers: { 'retry-after': String(CHECK_INTERVAL_MS / 1000) },
    })
  const texts = await resolveTxt(challengeNameOf(domain))
  return { isFound: texts.includes(`signalbox-domain=${token}`) }
}

/** Proves a domain, for one connection at most. `isChanged` is false for a proven one. Throws 404, 403, 409. */
export async function verifyConnectionDomain(
  db: Database,
  input: DomainTarget & { proof: { by: 'operator' } | { by: 'dns'; isFound: boolean }; caller: Caller; now: Date },
): Promise<RowChange<ConnectionDomainRecord>> {
  const { proof, caller, now } = input
  const { isEnabled, isEnforced } = await loadConnection(
    db,
    { target: input.target, id: input.connection },
    { lock: true, closes: true },
  )
  const domain = await loadConnectionDomain(db, input, { lock: true })
  if (proof.by === 'dns') checkMayConnect(caller, domain.account)
  if (isExpired(domain, now)) throw notFound('domain')
  if (domain.verifiedAt !== null) return { row: domain, isChanged: false }
  if (proof.by === 'dns' && !proof.isFound) {
    const text = `No TXT record of ${challengeNameOf(domain.domain)} holds signalbox-domain=${domain.token}. Name servers may take an hour to show a new one.`
    throw new Problem('domain_unproven', text)
  }
  try {
    await markVerified(db, { id: domain.id, by: proof.by, now })
  } catch (error) {
    if (!isUniqueViolation(error, 'connection_domain_verified_key')) throw error
    throw new Problem('conflict', 'Another connection has proven this domain. It must be removed there first.', {
      reason: 'domain_taken',
    })
  }
  if (isEnabled && isEnforced)
    await endClosedAccess(db, { id: domain.connection, domain: domain.domain, spared: caller, now })
  const proven = { verifiedAt: now, verifiedBy: proof.by, expiresAt: null, updatedAt: now }
  return { row: { ...domain, ...proven } }
}

/** Removes a domain, and ends the access that users with its addresses opened by the connection. Throws 404, 403. */
export async function removeConnectionDomain(
  db: Database,
  { caller, now, ...path }: DomainTarget & { caller: Caller; now: Date },
): Promise<ConnectionDomainRecord> {
  // Sign-ins by the connection lock it: none is in progress behind this lock.
  await loadConnection(db, { target: path.target, id: path.connection }, { lock: true })
  const domain = await loadConnectionDomain(db, path, { lock: true })
  checkMayConnect(caller, domain.account)
  if (domain.verifiedAt !== null)
    await endConnectionAccess(db, { id: domain.connection, domain: domain.domain, forgets: true, now })
  await deleteConnectionDomainRow(db, domain)
  return domain
}

/** The enabled connection that has proven the domain of an address, whether a user has the address or not. */
export function findConnectionOfAddress(db: Database, email: string): ReturnType<typeof findConnectionOfDomain> {
  return findConnectionOfDomain(db, { domain: domainOf(email) })
}
