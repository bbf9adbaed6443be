import { expect, test, vi } from 'vitest'
import { openDeliveryGround } from '../harness/delivery-ground.ts'
import type { ServiceProcess } from '../harness/service-process.ts'
import { waitFor } from '../harness/wait.ts'

// Whole processes: on a busy machine each start alone may take many seconds.
vi.setConfig({ testTimeout: 120_000 })

/** A second (docs/contract/identity.md#time-until-a-change-takes-effect), and what an answer takes on a busy machine. */
const LIMIT_MS = 2_000

interface HeldClient {
  id: string
  /** The status of an introspection by the client, in this process: 200 while it is known with this secret. */
  statusIn(service: ServiceProcess): Promise<number>
}

async function createClient(service: ServiceProcess): Promise<HeldClient> {
  const made = await service.call('POST', '/api/v3/oauth/client', {
    name: 'Held',
    type: 'confidential',
    redirect_uris: ['https://app.example.com/callback'],
  })
  expect(made.status).toBe(201)
  const { document_id: id, client_secret: secret } = made.body.data
  const statusIn = async ({ url }: ServiceProcess) => {
    const headers = {
      authorization: `Basic ${Buffer.from(`${id}:${encodeURIComponent(secret)}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    }
    const answer = await fetch(`${url}/api/v3/oauth/introspect`, { method: 'POST', headers, body: 'token=unknown' })
    await answer.arrayBuffer()
    return answer.status
  }
  return { id, statusIn }
}

test('a deleted OAuth client is refused by the process that deleted it at once, by another one within a second', async () => {
  await using ground = await openDeliveryGround()
  const [one, other] = await Promise.all([ground.start({ roles: 'api' }), ground.start({ roles: 'api' })])
  const client = await createClient(one)
  for (const service of [one, other, one, other]) expect(await client.statusIn(service)).toBe(200)
  expect((await one.call('DELETE', `/api/v3/oauth/client/${client.id}`)).status).toBe(200)
  const startedAt = performance.now()
  expect(await client.statusIn(one)).toBe(401)
  await waitFor('the refusal in the other process', async () => (await client.statusIn(other)) === 401)
  expect(performance.now() - startedAt).toBeLessThan(LIMIT_MS)
})
