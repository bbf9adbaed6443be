import type { TestApp, TestCall } from '../harness/app/app.ts'
import { type Calls, EACH, onceElse, type Rule, SAME } from './parallel-case.ts'

const OPEN = '/api/v3/auth/portal-session/open'

/** The cases of portal sessions, which a key of a platform makes. */
export function buildPortalCases(fixture: {
  // biome-ignore lint/suspicious/noExplicitAny: rows of every shape
  make: (path: string, body?: unknown, call?: TestCall) => Promise<any>
  app: () => TestApp
}): Record<string, [Rule, () => Promise<Calls>]> {
  const { make, app } = fixture
  const makeAccount = async (): Promise<string> =>
    (await make('/api/v3/identity/account', { name: 'Acme' })).document_id
  const callByKey = async () =>
    app().callAs((await make('/api/v3/identity/api-key', { name: 'platform', permissions: ['*:*'] })).key)
  const makeSession = async () => {
    const id = await makeAccount()
    const path = `/api/v3/identity/account/${id}/portal-session`
    const made = await make(path, { role: 'account-viewer' }, await callByKey())
    return { id, session: made.document_id as string, link: made.url.split('#token=')[1] as string }
  }
  return {
    'portal-session.create': [
      EACH,
      async () => ({ id: await makeAccount(), body: { role: 'account-viewer' }, call: await callByKey() }),
    ],
    'portal-session.delete': [
      onceElse(404),
      async () => {
        const { id, session } = await makeSession()
        return { id, params: { session } }
      },
    ],
    'portal-session.open': [
      onceElse(410),
      async () => ({ body: { token: (await makeSession()).link }, call: app().anonymous }),
    ],
    'portal-session.end': [
      SAME,
      async () => {
        const { token } = await make(OPEN, { token: (await makeSession()).link }, app().anonymous)
        return { body: { token }, call: app().anonymous }
      },
    ],
  }
}
