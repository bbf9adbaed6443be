import { createHmac } from 'node:crypto'
import type { ContractFixture, Json } from '../contract/contract-fixture.ts'
import type { SimulatedProvider } from '../harness/realtime/realtime-provider.ts'
import type { MakeRequest } from './route-requests.ts'

/** Input of a successful request to each realtime route, in the order of the routes. */
export function buildRealtimeRouteRequests(
  providers: () => { fixture: ContractFixture; app: SimulatedProvider['app'] },
  newContract: () => Promise<Json>,
): Record<string, MakeRequest | undefined> {
  return {
    'realtime.auth': async () => ({
      body: { socket_id: '1.1', channel_name: `private-contract-${(await newContract()).document_id}` },
    }),
    'realtime.user-auth': () => ({ body: { socket_id: '1.1' } }),
    'realtime.config': () => ({ call: providers().fixture.app.anonymous }),
    'realtime-message.find-all': undefined,
    'realtime-channel.find-all': undefined,
    'realtime-channel-event.find-all': undefined,
    'realtime.webhook': () => {
      const { fixture, app } = providers()
      const body = JSON.stringify({
        time_ms: fixture.app.clock.now(),
        events: [{ name: 'channel_occupied', channel: 'private-x' }],
      })
      const signature = createHmac('sha256', app.secret).update(body).digest('hex')
      return {
        body,
        headers: { 'x-pusher-key': app.key, 'x-pusher-signature': signature },
        call: fixture.app.anonymous,
      }
    },
    'realtime-channel.find-members': () => ({
      params: { name: 'presence-account-01890000-0000-7000-8000-000000000001' },
    }),
    'realtime.presence-auth': async () => ({
      body: { socket_id: '1.1', channel_name: `presence-contract-${(await newContract()).document_id}` },
    }),
    'realtime.resume': async () => ({
      body: {
        channel_name: `private-contract-${(await newContract()).document_id}`,
        since: new Date(providers().fixture.app.clock.now()).toISOString(),
      },
    }),
    'realtime.publish-test': async () => ({
      body: { channel_name: `private-contract-${(await newContract()).document_id}`, text: 'hello' },
    }),
  }
}
