import type { TestApp } from '../harness/app/app.ts'
import type { MakeRequest } from './route-requests.ts'

/** A connection to a provider that nobody calls. */
export const CONNECTION_BODY = {
  kind: 'oidc',
  name: 'Corp login',
  oidc: { issuer: 'https://login.corp.example', client_id: 'signalbox', client_secret: 'a-secret-of-corp' },
}

/** Requests to the routes of connections and their domains. */
export function buildConnectionRouteRequests(fixture: {
  /** Creates a row as the administrator. */
  // biome-ignore lint/suspicious/noExplicitAny: rows of every shape
  created: (path: string, body: object) => Promise<any>
  app: () => TestApp
  readMetadata: MakeRequest
}): Record<string, MakeRequest> {
  const { created, app, readMetadata } = fixture
  let made = 0
  const newAccount = async (): Promise<string> => {
    made += 1
    return (await created('/api/v3/identity/account', { name: `connected ${made}` })).document_id
  }
  const newConnection = async () => {
    const id = await newAccount()
    const path = `/api/v3/identity/account/${id}/connection`
    return { id, connection: (await created(path, CONNECTION_BODY)).document_id as string }
  }
  const newDomain = async () => {
    const { id, connection } = await newConnection()
    const path = `/api/v3/identity/account/${id}/connection/${connection}/domain`
    const domain = (await created(path, { domain: `corp${made}.example` })).document_id as string
    return { id, connection, domain }
  }
  /** A domain that an operator has proven: its record is not looked up. */
  const provenDomain = async () => {
    const params = await newDomain()
    const path = `/api/v3/identity/account/${params.id}/connection/${params.connection}/domain/${params.domain}`
    await app().admin('POST', `${path}/approve`)
    return params
  }
  return {
    'connection.create': async () => ({ params: { id: await newAccount() }, body: CONNECTION_BODY }),
    'connection.find-all': async () => ({ params: { id: (await newConnection()).id } }),
    'connection.find-one': async () => ({ params: await newConnection() }),
    'connection.update': async () => ({ params: await newConnection(), body: { name: 'Renamed' } }),
    'connection.delete': async () => ({ params: await newConnection() }),
    'connection.find-activity': async () => ({ params: await newConnection() }),
    'connection.read-metadata': readMetadata,
    'login.find-connection': async () => ({ body: { email: 'ada@corp.example' }, call: app().anonymous }),
    'connection-domain.create': async () => ({ params: await newConnection(), body: { domain: 'new.example' } }),
    'connection-domain.find-all': async () => {
      const { id, connection } = await newDomain()
      return { params: { id, connection } }
    },
    'connection-domain.verify': async () => ({ params: await provenDomain() }),
    'connection-domain.approve': async () => ({ params: await newDomain() }),
    'connection-domain.delete': async () => ({ params: await provenDomain() }),
  }
}
