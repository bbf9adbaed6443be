import type { TestCall } from '../harness/app/app.ts'
import { CONNECTION_BODY } from '../journeys/connection-route-requests.ts'
import { type Calls, EACH, onceElse, type Rule, SAME } from './parallel-case.ts'

/** The cases of connections and their domains. */
export function buildConnectionCases(fixture: {
  // biome-ignore lint/suspicious/noExplicitAny: rows of every shape
  make: (path: string, body?: unknown, call?: TestCall) => Promise<any>
}): Record<string, [Rule, () => Promise<Calls>]> {
  const { make } = fixture
  let made = 0
  const makeAccount = async (): Promise<string> =>
    (await make('/api/v3/identity/account', { name: 'Acme' })).document_id
  const makeConnection = async () => {
    const id = await makeAccount()
    const path = `/api/v3/identity/account/${id}/connection`
    return { id, connection: (await make(path, CONNECTION_BODY)).document_id as string }
  }
  const makeDomain = async () => {
    made += 1
    const { id, connection } = await makeConnection()
    const path = `/api/v3/identity/account/${id}/connection/${connection}/domain`
    const domain = (await make(path, { domain: `parallel${made}.example` })).document_id as string
    return { id, connection, domain }
  }
  const ofDomain = async () => {
    const { id, connection, domain } = await makeDomain()
    return { id, params: { connection, domain } }
  }
  return {
    'connection.create': [EACH, async () => ({ id: await makeAccount(), body: CONNECTION_BODY })],
    'connection.update': [
      SAME,
      async () => {
        const { id, connection } = await makeConnection()
        return { id, params: { connection }, body: { is_enabled: false } }
      },
    ],
    'connection.delete': [
      onceElse(404),
      async () => {
        const { id, connection } = await makeConnection()
        return { id, params: { connection } }
      },
    ],
    'connection-domain.create': [
      onceElse(409),
      async () => {
        const { id, connection } = await makeConnection()
        return { id, params: { connection }, body: { domain: 'parallel.example' } }
      },
    ],
    'connection-domain.approve': [SAME, ofDomain],
    'connection-domain.delete': [onceElse(404), ofDomain],
  }
}
