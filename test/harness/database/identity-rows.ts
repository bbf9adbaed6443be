import { randomBytes, randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { AccountId, ConnectionId, SessionId, UserId } from '../../../src/base/id.ts'
import type { Database } from '../../../src/postgres/statement/database.ts'

/** The instant at which the rows are made. */
export const MADE_AT = new Date('2026-09-11T12:00:00.000Z')

/** The instant so many milliseconds after `MADE_AT`. */
export const madeAfter = (ms: number) => new Date(MADE_AT.getTime() + ms)

/** A new id. */
export const newId = <Name extends string>() => randomUUID() as string as Name

const times = { created_at: MADE_AT, updated_at: MADE_AT }

/** Rows of identity that a test of statements writes straight into their tables; each is the same but for what is given. */
export function buildIdentityRows(db: Database) {
  return {
    async user(more: object = {}): Promise<UserId> {
      const id = newId<UserId>()
      const row = { document_id: id, email: `${id}@b.test`, ...times, ...more }
      await db.insertInto('user').values(row).execute()
      return id
    },
    async account(more: object = {}): Promise<AccountId> {
      const id = newId<AccountId>()
      const row = { document_id: id, name: `account ${id}`, ...times, ...more }
      await db.insertInto('account').values(row).execute()
      return id
    },
    /** A membership with roles of these names, which are made where they are missing. */
    async member(account: AccountId, user: UserId, roles: readonly string[] = []): Promise<void> {
      const id = newId()
      await db
        .insertInto('account_member')
        .values({ document_id: id, account, user, ...times })
        .execute()
      for (const name of roles)
        await sql`insert into account_member_role (member, role, created_at)
          select ${id}::uuid, document_id, ${MADE_AT} from role where name = ${name}`.execute(db)
    },
    async session(user: UserId, more: object = {}): Promise<SessionId> {
      const id = newId<SessionId>()
      const row = { document_id: id, user, expires_at: madeAfter(60_000), auth_time: MADE_AT, last_used_at: MADE_AT }
      await db
        .insertInto('session')
        .values({ ...row, ...times, ...more })
        .execute()
      return id
    },
    async apiKey(user: UserId, more: object = {}): Promise<{ id: string; tokenHash: Buffer }> {
      const [id, tokenHash] = [newId(), randomBytes(32)]
      const row = {
        document_id: id,
        user,
        name: 'key',
        token_hash: tokenHash,
        hint: 'sbx_',
        permissions: ['user:find-all'],
      }
      await db
        .insertInto('api_key')
        .values({ ...row, ...times, ...more })
        .execute()
      return { id, tokenHash }
    },
    async portalSession(account: AccountId, apiKey: string, more: object = {}) {
      const [id, linkHash, tokenHash] = [newId(), randomBytes(32), randomBytes(32)]
      const row = { document_id: id, account, api_key: apiKey, role: 'account-developer', lifetime_seconds: 60 }
      await db
        .insertInto('portal_session')
        .values({
          ...row,
          link_hash: linkHash,
          token_hash: tokenHash,
          expires_at: madeAfter(60_000),
          ...times,
          ...more,
        })
        .execute()
      return { id, linkHash, tokenHash }
    },
    /** A connection of an account, by which alone the members with an address of its domain sign in. */
    async enforcedConnection(account: AccountId, domain: string): Promise<ConnectionId> {
      const [connection, claim] = [newId<ConnectionId>(), { document_id: newId(), account, domain, token: 'a' }]
      const row = { document_id: connection, account, kind: 'oidc', name: 'Corp', is_enforced: true }
      const oidc = { issuer: 'https://a.example', client_id: 'a', scopes: ['openid'], is_email_trusted: false }
      await db
        .insertInto('connection')
        .values({ ...row, ...oidc, secret_encrypted: 'sealed', ...times })
        .execute()
      await db
        .insertInto('connection_domain')
        .values({ ...claim, connection, verified_at: MADE_AT, verified_by: 'dns', ...times })
        .execute()
      return connection
    },
    /** Sets columns of one row. */
    async set(table: 'user' | 'account' | 'session' | 'api_key' | 'portal_session', id: string, columns: object) {
      await db
        .updateTable(table)
        .set(columns as never)
        .where('document_id', '=', id as never)
        .execute()
    },
  }
}
