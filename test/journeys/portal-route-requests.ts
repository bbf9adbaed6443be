import type { TestApp } from '../harness/app/app.ts'
import type { Request } from './route-requests.ts'

const OPEN = '/api/v3/auth/portal-session/open'

/** Requests to the routes of portal sessions, which a key of a platform makes. */
export function buildPortalRouteRequests(fixture: {
  /** Creates a row as the administrator. */
  // biome-ignore lint/suspicious/noExplicitAny: rows of every shape
  created: (path: string, body: object) => Promise<any>
  app: () => TestApp
}): Record<string, () => Promise<Request>> {
  const { created, app } = fixture
  let accounts = 0
  const newAccount = async (): Promise<string> => {
    accounts += 1
    return (await created('/api/v3/identity/account', { name: `portal ${accounts}` })).document_id
  }
  const callByKey = async () =>
    app().callAs((await created('/api/v3/identity/api-key', { name: 'platform', permissions: ['*:*'] })).key)
  /** A portal session that was not opened yet, with the token of its link. */
  const newSession = async () => {
    const id = await newAccount()
    const path = `/api/v3/identity/account/${id}/portal-session`
    const { data } = (await (await callByKey())('POST', path, { role: 'account-viewer' })).body
    return { id, session: data.document_id as string, link: data.url.split('#token=')[1] as string }
  }
  return {
    'portal-session.create': async () => ({
      params: { id: await newAccount() },
      body: { role: 'account-developer' },
      call: await callByKey(),
    }),
    'portal-session.find-all': async () => ({ params: { id: (await newSession()).id } }),
    'portal-session.delete': async () => {
      const { id, session } = await newSession()
      return { params: { id, session } }
    },
    'portal-session.open': async () => ({ body: { token: (await newSession()).link }, call: app().anonymous }),
    'portal-session.end': async () => {
      const opened = await app().anonymous('POST', OPEN, { token: (await newSession()).link })
      return { body: { token: opened.body.data.token }, call: app().anonymous }
    },
  }
}
