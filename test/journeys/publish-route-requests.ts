import { expect } from 'vitest'
import type { ContractFixture, Json } from '../contract/contract-fixture.ts'
import type { TestCall } from '../harness/app/app.ts'
import type { MakeRequest, Request } from './route-requests.ts'

let keys = 0

/** The forms of a request that publishes: with and without keys, by an operator and by a tenant. */
export function buildPublishForms(
  providers: () => { fixture: ContractFixture; account: string },
  make: { newEventType: () => Promise<Json>; roleId: (role: string) => Promise<string> },
): Record<string, MakeRequest> {
  const publish = async (more: object, isKeyless: boolean): Promise<Request> => ({
    body: { event: (await make.newEventType()).internal, id: 'inv-1', ...more },
    isKeyless,
  })
  const ofAccount = (isKeyless: boolean, more: object = {}) =>
    publish({ account: providers().account, ...more }, isKeyless)

  /** A user with this role in the account. */
  async function newTenant(role: string): Promise<TestCall> {
    const { fixture, account } = providers()
    const { call, userId } = await fixture.app.signInMember([account as never])
    const roles = [await make.roleId(role)]
    await fixture.app.admin('PATCH', `/api/v3/identity/account/${account}/member`, { user: userId, roles })
    return call
  }

  return {
    'event.publish without a key': () => publish({}, true),
    'event.publish with a URL': () => publish({ url: 'https://other.example.com/inv-1' }, true),
    'event.publish for an account without a key': () => ofAccount(true),
    'event.publish with a key of the request': () => ofAccount(false),
    'event.publish with a key of the event': () => {
      keys += 1
      return ofAccount(true, { idempotency_key: `of the event ${keys}` })
    },
    'event.publish of a tenant without a key': async () => {
      const { fixture, account } = providers()
      const { document_id: id, internal: event } = await make.newEventType()
      await fixture.app.admin('PATCH', `/api/v3/webhook/event/${id}/tenant-visible`, { is_tenant_visible: true })
      const call = await newTenant('account-publisher')
      const body = { event, account, id: 'inv-1' }
      // From here on the limits of the account are in memory.
      expect((await call('POST', '/api/v3/webhook/publish', body)).status).toBe(202)
      return { body, call, isKeyless: true }
    },
  }
}
