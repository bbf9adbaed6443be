import { createSecretKey, randomUUID } from 'node:crypto'
import type { UserId } from '../../src/base/id.ts'
import { signStandard } from '../../src/outbound/signature.ts'
import type { ContractFixture, Json } from '../contract/contract-fixture.ts'
import { TEST_SECRETS } from '../harness/app/test-secrets.ts'
import { accessClaims, headOf, makeKey, signParts } from '../harness/app/token-issuer.ts'
import { addGrant, addInteraction } from '../harness/browser/oauth-rows.ts'
import type { MakeRequest } from './route-requests.ts'

/** The key that signs the access tokens of the requests. */
export const PROVIDER_KEY = makeKey('key-1')

/** Setup of the rows that the requests name. */
interface Makers {
  created(path: string, body: object): Promise<Json>
  name(): string
  newUser(): Promise<Json>
}

/** Input of a successful request to each route of the OAuth provider and the exchange, in the order of the routes. */
export function buildOAuthRouteRequests(
  fixture: () => ContractFixture,
  { created, name, newUser }: Makers,
): Record<string, MakeRequest | undefined> {
  const newClient = () =>
    created('/api/v3/oauth/client', {
      name: name(),
      type: 'confidential',
      redirect_uris: ['https://app.example.com/callback'],
    })
  const newClientId = async () => (await newClient()).document_id as string
  const ofClient = (body?: object) => async () => ({ params: { id: await newClientId() }, ...(body && { body }) })
  return {
    'oauth-hook.access-token': async () => {
      const body = { user_id: randomUUID(), claims: { role: 'authenticated' } }
      const text = JSON.stringify({ ...body, claims: { ...body.claims, sub: body.user_id } })
      const message = { id: randomUUID(), timestampSeconds: Math.floor(fixture().app.clock.now() / 1000), body: text }
      const key = createSecretKey(Buffer.from(TEST_SECRETS.oauthHook[0] ?? ''))
      const headers = {
        'webhook-id': message.id,
        'webhook-timestamp': String(message.timestampSeconds),
        'webhook-signature': signStandard(key, message),
        'content-type': 'application/json',
      }
      return { body: text, headers, call: fixture().app.anonymous, isKeyless: true }
    },
    'oauth.exchange': async () => {
      const userId = (await newUser()).document_id as UserId
      const seconds = Math.floor(fixture().app.clock.now() / 1000)
      const claims = accessClaims({ baseUrl: fixture().app.app.baseUrl(), userId, seconds })
      return { body: { token: signParts(headOf(PROVIDER_KEY), claims, PROVIDER_KEY) }, call: fixture().app.anonymous }
    },
    'oauth-client.create': () => ({
      body: { name: name(), type: 'public', redirect_uris: ['https://app.example.com/callback'] },
    }),
    'oauth-client.find-all': undefined,
    'oauth-client.find-one': ofClient(),
    'oauth-client.update': ofClient({ name: 'Renamed' }),
    'oauth-client.rotate-secret': ofClient({}),
    'oauth-client.delete': ofClient(),
    'oauth-client.dashboard-clients': async () => ({ query: `?client=${await newClientId()}` }),
    'oauth-client.find-secrets': ofClient(),
    'oauth-client.revoke-secret': async () => {
      const id = await newClientId()
      const { body } = await fixture().app.admin('GET', `/api/v3/oauth/client/${id}/secret`)
      return { params: { id, secret: body.data[0].document_id } }
    },
    'oauth-client.find-decisions': async () => {
      const id = await newClientId()
      const { database, adminId, clock } = fixture().app
      await database.pool.query(
        `insert into audit_log (document_id, action, outcome, "user", detail, created_at)
         values (gen_random_uuid(), 'oauth-decision.create', 'success', $1, $2, $3)`,
        [adminId, { client: id, decision: 'deny' }, new Date(clock.now())],
      )
      return { params: { id } }
    },
    'oauth-decision.create': async () => {
      const asked = { userId: fixture().app.adminId, clientId: await newClientId() }
      return { body: { authorization_id: await addInteraction(fixture().app, asked), decision: 'approve' } }
    },
    'oauth-grant.find-all': undefined,
    'oauth-grant.delete': async () => ({
      params: { id: await addGrant(fixture().app, { userId: fixture().app.adminId, clientId: await newClientId() }) },
    }),
  }
}
