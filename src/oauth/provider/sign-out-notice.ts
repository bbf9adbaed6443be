import { parseCookie } from 'cookie'
import type { Provider } from 'oidc-provider'

/** The session of the provider, as far as this file reads it. */
interface EndedSession {
  accountId?: string
  authorizations?: Record<string, { sid?: string } | undefined>
  destroy(): Promise<void>
}

/** A client of the provider that may be notified of sign-outs. */
interface NotifiedClient {
  clientId: string
  backchannelLogoutUri?: string
  backchannelLogout(accountId: string, sid: string | undefined): Promise<unknown>
}

/**
 * Ends the provider session of a browser that has signed out of the service, and posts a logout token to each client
 * with a registered address (OpenID Connect Back-Channel Logout section 2.5), as a sign-out by a client does.
 * `onFailure` is called for clients that refused it.
 */
export async function noticeSignOut(
  provider: Provider,
  { cookieHeader, onFailure }: { cookieHeader: string; onFailure: (error: unknown, clientId: string) => void },
): Promise<void> {
  const id = parseCookie(cookieHeader)[provider.cookieName('session')]
  const session =
    id === undefined ? undefined : ((await provider.Session.find(id)) as unknown as EndedSession | undefined)
  if (!session) return
  const { accountId, authorizations = {} } = session
  await session.destroy()
  if (accountId === undefined) return
  await Promise.all(
    Object.entries(authorizations).map(async ([clientId, authorization]) => {
      const client = (await provider.Client.find(clientId)) as unknown as NotifiedClient | undefined
      if (client?.backchannelLogoutUri === undefined) return
      await client.backchannelLogout(accountId, authorization?.sid).catch((error) => onFailure(error, clientId))
    }),
  )
}
