import { describe, expect, test } from 'vitest'
import { createTestApp, type TestCall } from '../../../test/harness/app/app.ts'
import { readMails } from '../../../test/harness/browser/mailbox.ts'
import { race } from '../../../test/harness/plan/race.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const ACCOUNTS = '/api/v3/identity/account'
const ACCEPT = '/api/v3/auth/invitation/accept'

/** Two processes on one database. */
const app = await openForFile(createTestApp())
const other = await openForFile(createTestApp({ database: app.database }))

const makeAccount = async () => (await app.admin('POST', ACCOUNTS, { name: 'Example' })).body.data.document_id as string
const remove = (account: string) => app.admin('DELETE', `${ACCOUNTS}/${account}`)
const holdAccount = (account: string) => ({
  text: 'select from account where document_id = $1 for update',
  values: [account],
})

/** Holds a key of an account: its deletion has marked the account, and waits for the key. */
async function holdKeyOf(account: string) {
  const body = { name: 'bound', account, permissions: ['contract:*'] }
  expect((await app.admin('POST', '/api/v3/identity/api-key', body)).status).toBe(201)
  return { text: 'select from api_key where account = $1 for update', values: [account] }
}

let count = 0
/** An open invitation to an account. */
async function invite(account: string): Promise<{ email: string; token: string }> {
  const email = `guest-${count++}@example.test`
  expect((await app.admin('POST', `${ACCOUNTS}/${account}/invitation`, { email })).status).toBe(201)
  return { email, token: (await readMails(app, email))[0]!.token as string }
}

async function countOf(text: string, value: string): Promise<number> {
  return Number((await app.database.pool.query(text, [value])).rows[0].count)
}

describe('an invitation that is accepted while the account is deleted', () => {
  const accept = (call: TestCall, token: string) => call('POST', ACCEPT, { token, password: 'correct horse battery' })

  test('makes no user and no member when the account was deleted first', async () => {
    const account = await makeAccount()
    const { email, token } = await invite(account)
    const requests = [() => remove(account), () => accept(other.anonymous, token)]
    const [removed, accepted] = await race(app.database, await holdKeyOf(account), requests)
    expect([removed?.status, accepted?.status]).toEqual([200, 410])
    expect(await countOf('select count(*) from "user" where email = $1', email)).toBe(0)
    expect(await countOf('select count(*) from account_member where account = $1', account)).toBe(0)
  })

  test('makes both when it came first', async () => {
    const account = await makeAccount()
    const { token } = await invite(account)
    const requests = [() => accept(other.anonymous, token), () => remove(account)]
    const [accepted, removed] = await race(app.database, holdAccount(account), requests)
    expect([accepted?.status, removed?.status]).toEqual([200, 200])
  })
})

describe('a contract that is made while its account is deleted', () => {
  const make = (account: string) => other.admin('POST', '/api/v3/contract/contract', { account, name: 'Lease' })

  test('is refused when the account was deleted first', async () => {
    const account = await makeAccount()
    const requests = [() => remove(account), () => make(account)]
    const [removed, made] = await race(app.database, await holdKeyOf(account), requests)
    expect(removed?.status).toBe(200)
    expect(made).toMatchObject({ status: 422, body: { errors: [{ path: 'account' }] } })
    expect(await countOf('select count(*) from contract where account = $1', account)).toBe(0)
  })
})
