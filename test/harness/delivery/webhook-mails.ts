import { expect } from 'vitest'
import { COLLECT_S } from '../../../src/webhook/mail/notice-worker.ts'
import {
  type ContractFixture,
  type ContractWebhook,
  type Json,
  startContractFixture,
} from '../../contract/contract-fixture.ts'

type SignedIn = Awaited<ReturnType<ContractFixture['signInWithRoles']>>

/** The service, with what mails about webhooks are tested by. */
export interface WebhookMails extends AsyncDisposable {
  fixture: ContractFixture
  sql(text: string, values?: unknown[]): Promise<Json[]>
  /** A new account with an administrator and a webhook, and no mail or notice of others. */
  begin(): Promise<{ account: string; boss: SignedIn; hook: ContractWebhook }>
  /** Signs a new member in, by the key of the administrator, whose session ends while the clock moves. */
  signInWithRoles(accounts: readonly string[], roles: readonly string[]): Promise<SignedIn>
  emailOf(user: string): Promise<string>
  /** Makes one delivery of the account end with this status, after `count` failures in a row of each webhook. */
  deliver(delivery: {
    account: string
    hooks: readonly ContractWebhook[]
    status: number
    count?: number
  }): Promise<void>
  advance(seconds: number): void
  /** Writes and sends the mails that are due; returns those sent since the last time, by recipient. */
  take(): Promise<Json[]>
  /** The mails of what happened, once it is collected. */
  collect(): Promise<Json[]>
}

/** Starts the service with a receiver. */
export async function openWebhookMails(): Promise<WebhookMails> {
  const fixture = await startContractFixture()
  const { app } = fixture
  const sql = async (text: string, values: unknown[] = []) => (await app.database.pool.query(text, values)).rows
  const advance = (seconds: number) => app.clock.advance(seconds * 1_000)
  async function signInWithRoles(accounts: readonly string[], names: readonly string[]) {
    const user = await app.signInMember()
    const roles = await Promise.all(names.map(fixture.findRoleId))
    for (const account of accounts) {
      const answer = await app.admin('POST', `/api/v3/identity/account/${account}/member`, { user: user.userId, roles })
      expect(answer.status).toBe(201)
    }
    return user
  }
  async function take(): Promise<Json[]> {
    await app.app.noticeWorker.drain()
    await app.app.mailWorker.drain()
    const { body } = await app.anonymous('GET', '/auth/mail')
    await sql('delete from kept_mail')
    return body.data.sort((a: Json, b: Json) => (a.to + a.subject < b.to + b.subject ? -1 : 1))
  }
  return {
    fixture,
    sql,
    advance,
    signInWithRoles,
    take,
    begin: async () => {
      for (const table of ['mail_outbox', 'kept_mail', 'webhook_mail_notice', 'webhook_mail_turn'])
        await sql(`delete from ${table}`)
      await sql('update webhook set deleted_at = created_at where deleted_at is null')
      const account = (await fixture.createAccount()).document_id
      const boss = await signInWithRoles([account], ['account-admin'])
      return { account, boss, hook: await fixture.createWebhook({ account }, ['contract.create']) }
    },
    emailOf: async (user) => (await sql('select email from "user" where document_id = $1', [user]))[0].email,
    deliver: async ({ account, hooks, status, count }) => {
      const ids = hooks.map(({ id }) => id)
      if (count !== undefined)
        await sql('update webhook set consecutive_failures = $2 where document_id = any($1)', [ids, count])
      fixture.receiver.behave({ kind: 'status', status })
      await fixture.makeChange(account)
      await app.settle()
    },
    collect: () => {
      advance(COLLECT_S)
      return take()
    },
    [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose](),
  }
}

/** The subjects of mails, without the names in them. */
export const subjectsOf = (mails: readonly Json[]): string[] =>
  mails.map(({ subject }) => subject.split(' at ')[0].replace(/".*?"/g, 'X'))
