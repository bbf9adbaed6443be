import { beforeAll, describe, expect, test } from 'vitest'
import type { TestCall } from '../../../test/harness/app/app.ts'
import { openDelivery } from '../../../test/harness/app/delivery-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId } from '../../base/id.ts'

const LEDGER = '/api/v3/webhook/dispatch'

const d = await openForFile(openDelivery())
const account: AccountId = (await d.call('POST', '/api/v3/identity/account', { name: 'Example' })).body.data.document_id
await d.makeWebhook({ events: ['contract.create', 'contract.update'] })
const make = async (name: string) =>
  (await d.call('POST', '/api/v3/contract/contract', { account, name, status: 'draft' })).body.data.document_id
const contracts = [await make('Lease'), await make('Loan')]
await d.call('PATCH', `/api/v3/contract/contract/${contracts[0]}`, { name: 'Rent' })
await d.pass(0)

describe('the ledger by resource_id', () => {
  const list = async (filter: string) =>
    (await d.call('GET', `${LEDGER}?filters=resource_id|${filter}&count=true`)).body

  test('holds the deliveries of the events of that resource', async () => {
    const { data, pagination } = await list(`eq|${contracts[0]}`)
    expect(data.map(({ event }: { event: string }) => event).sort()).toEqual(['contract.create', 'contract.update'])
    expect(pagination.total).toBe(2)
    expect((await list(`eq|${contracts[1]}`)).data).toHaveLength(1)
    expect((await list(`in|${contracts.join(',')}`)).data).toHaveLength(3)
    expect((await list('eq|nothing')).data).toEqual([])
  })

  test('takes no other operator', async () => {
    for (const operator of ['ne', 'like', 'gt', 'null']) {
      const refused = await d.t.admin('GET', `${LEDGER}?filters=resource_id|${operator}|true`)
      expect([refused.status, refused.body.detail]).toEqual([422, expect.stringContaining('allowed are eq, in.')])
    }
  })

  test('names what a bulk replay takes', async () => {
    const body = { filters: [`resource_id|eq|${contracts[0]}`], confirm_duplicate: true, dry_run: true }
    const { data } = (await d.call('POST', `${LEDGER}/replay`, body)).body
    expect(data.total).toBe(2)
  })
})

describe('the ledger of a caller of one account', () => {
  /** The newest events of a resource that the ledger is read of, and one more. */
  const NEWER = 1_001
  let mine: AccountId
  let member: TestCall

  const record = (account: string, count: number) =>
    d.t.database.pool.query(
      `insert into event_occurrence (document_id, event, account, resource, action, resource_id, routed_at, created_at)
       select gen_random_uuid(), 'contract.update', $1, 'contract', 'update', $2, $3, $3 from generate_series(1, $4::int)`,
      [account, contracts[0], new Date(d.t.clock.now() + 1_000), count],
    )
  const countRows = async () => {
    const filter = `filters=resource_id|eq|${contracts[0]}`
    const { body } = await member('GET', `${LEDGER}?${filter}&count=true`)
    const replay = { filters: [`resource_id|eq|${contracts[0]}`], confirm_duplicate: true, dry_run: true }
    return [body.data.length, body.pagination.total, (await member('POST', `${LEDGER}/replay`, replay)).body.data.total]
  }

  beforeAll(async () => {
    mine = account
    await d.makeWebhook({ account: mine, events: ['contract.update'] })
    // Events of one instant have no order.
    await d.pass(1_000)
    await d.call('PATCH', `/api/v3/contract/contract/${contracts[0]}`, { name: 'Hire' })
    await d.pass(0)
    const signedIn = await d.t.signInMember([mine])
    const roles = (await d.call('GET', '/api/v3/identity/role?filters=name|eq|account-developer')).body.data
    await d.call('PATCH', `/api/v3/identity/account/${mine}/member`, {
      user: signedIn.userId,
      roles: [roles[0].document_id],
    })
    member = signedIn.call
  })

  test('keeps its rows while other accounts publish events of the same id', async () => {
    expect(await countRows()).toEqual([1, 1, 1])
    const other = (await d.call('POST', '/api/v3/identity/account', { name: 'Other' })).body.data.document_id
    await record(other, NEWER)
    expect(await countRows()).toEqual([1, 1, 1])
  })

  test('holds those of the 1,000 newest events of that id in the account', async () => {
    await record(mine, NEWER - 2)
    expect(await countRows()).toEqual([1, 1, 1])
    await record(mine, 1)
    expect(await countRows()).toEqual([0, 0, 0])
  })
})
