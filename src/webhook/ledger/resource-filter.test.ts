import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type DeliveryApp, openDelivery } from '../../../test/harness/app/delivery-app.ts'

const LEDGER = '/api/v3/webhook/dispatch'

let d: DeliveryApp
let contracts: string[]

beforeAll(async () => {
  d = await openDelivery()
  const account = (await d.call('POST', '/api/v3/identity/account', { name: 'Example' })).body.data.document_id
  await d.makeWebhook({ events: ['contract.create', 'contract.update'] })
  const make = async (name: string) =>
    (await d.call('POST', '/api/v3/contract/contract', { account, name, status: 'draft' })).body.data.document_id
  contracts = [await make('Lease'), await make('Loan')]
  await d.call('PATCH', `/api/v3/contract/contract/${contracts[0]}`, { name: 'Rent' })
  await d.pass(0)
})
afterAll(() => d?.[Symbol.asyncDispose]())

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
