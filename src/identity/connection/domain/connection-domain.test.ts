import { describe, expect, test } from 'vitest'
import { createConnectionApp } from '../../../../test/harness/app/connection-app.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { readDomain } from './domain-name.ts'

let asked: string[] = []

const records = new Map<string, string[]>()
const t = await openForFile(
  createConnectionApp({
    resolveTxt: async (name) => {
      asked.push(name)
      return records.get(name) ?? []
    },
  }),
)
t.records = records

async function claim(domain: string) {
  const account = await t.makeAccount()
  const connection = await t.connect(account)
  const path = `/api/v3/identity/account/${account}/connection/${connection}/domain`
  const { body, status } = await t.app.admin('POST', path, { domain })
  return { account, connection, path, row: body.data, status, item: `${path}/${body.data?.document_id}` }
}

describe('a domain of a connection', () => {
  test.each<[string, string | undefined]>([
    ['Corp.Example', 'corp.example'],
    [' münchen.example ', 'xn--mnchen-3ya.example'],
    ['*.example.com', undefined],
    ['example', undefined],
    ['127.0.0.1', undefined],
    ['[::1]', undefined],
    ['example.com.', undefined],
    ['a@example.com', undefined],
    ['example.com/path', undefined],
    ['exa mple.com', undefined],
    ['-x.example', undefined],
    [`${'a'.repeat(64)}.example`, undefined],
  ])('%s is read as %s', (text, domain) => {
    expect(readDomain(text)).toBe(domain)
  })

  test('is proven by its record, looked up once in ten seconds, also by parallel requests', async () => {
    const { row, item } = await claim('proof.example')
    expect(row).toMatchObject({ verified_at: null, record_name: '_signalbox-challenge.proof.example' })
    asked = []
    const many = await Promise.all([1, 2, 3, 4].map(() => t.app.admin('POST', `${item}/verify`)))
    expect(many.map(({ status }) => status).sort()).toEqual([409, 429, 429, 429])
    expect(asked).toEqual(['_signalbox-challenge.proof.example'])
    expect(many.find(({ status }) => status === 409)?.body.code).toBe('domain_unproven')
    t.records.set(row.record_name, [row.record_value])
    t.app.clock.advance(10_000)
    const proven = await t.app.admin('POST', `${item}/verify`)
    expect(proven.body.data).toMatchObject({ verified_by: 'dns', expires_at: null })
    const again = await t.app.admin('POST', `${item}/verify`)
    expect(again.body.message).toBe('Domain unchanged.')
  })

  test('is proven for one connection, and the record of one claim proves no other', async () => {
    const first = await claim('taken.example')
    const second = await claim('taken.example')
    expect(first.row.record_value).not.toBe(second.row.record_value)
    t.records.set(first.row.record_name, [first.row.record_value])
    expect((await t.app.admin('POST', `${second.item}/verify`)).status).toBe(409)
    expect((await t.app.admin('POST', `${first.item}/verify`)).status).toBe(200)
    t.records.set(first.row.record_name, [first.row.record_value, second.row.record_value])
    t.app.clock.advance(10_000)
    expect(await t.app.admin('POST', `${second.item}/verify`)).toMatchObject({
      status: 409,
      body: { code: 'conflict' },
    })
    expect((await t.app.admin('POST', `${second.item}/approve`)).status).toBe(409)
    expect((await t.app.admin('DELETE', first.item)).status).toBe(200)
    expect((await t.app.admin('POST', `${second.item}/approve`)).body.data).toMatchObject({ verified_by: 'operator' })
  })

  test('is approved by operators alone', async () => {
    const { account, item } = await claim('approved.example')
    const member = await t.app.signInMember([account])
    const roles = [await t.findRole('account-admin')]
    await t.app.admin('PATCH', `/api/v3/identity/account/${account}/member`, { user: member.userId, roles })
    expect((await member.call('POST', `${item}/approve`)).status).toBe(403)
    expect((await t.app.admin('POST', `${item}/approve`)).status).toBe(200)
  })

  test('is routed once it is proven, whether a user has the address or not', async () => {
    const { connection, item } = await claim('routed.example')
    const find = (email: string) => t.app.anonymous('POST', '/api/v3/auth/login/connection', { email })
    expect((await find('ada@routed.example')).body.data.connection).toBeNull()
    await t.app.admin('POST', `${item}/approve`)
    await t.makeMember('ada@routed.example', [])
    const [known, unknown] = [await find('Ada@Routed.Example'), await find('nobody@routed.example')]
    expect(known.body).toEqual(unknown.body)
    expect(known.body.data).toMatchObject({
      connection,
      start_path: `/api/v3/auth/login/oauth/${connection}`,
      is_enforced: false,
    })
    expect((await find('ada@sub.routed.example')).body.data.connection).toBeNull()
  })

  test('expires unproven, and can be claimed again', async () => {
    // With a key: the session of the administrator ends before.
    const key = await t.app.admin('POST', '/api/v3/identity/api-key', { name: 'k', permissions: ['*:*'] })
    const call = t.app.callAs(key.body.data.key)
    const { path, row, item } = await claim('late.example')
    t.records.set(row.record_name, [row.record_value])
    t.app.clock.advance(14 * 24 * 3_600_000)
    expect((await call('POST', `${item}/verify`)).status).toBe(404)
    const again = await call('POST', path, { domain: 'late.example' })
    expect(again.status).toBe(201)
    expect(again.body.data.record_value).not.toBe(row.record_value)
  })
})
