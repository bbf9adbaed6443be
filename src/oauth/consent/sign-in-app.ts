import { parseCookie } from 'cookie'
import type { Database } from '../../postgres/statement/database.ts'
import { findAppName } from './interaction.store.ts'

/** The pages of an authorization, to which a sign-in may lead. */
export const ENTRY = '/auth/oauth'

/** The cookie of the provider that binds an authorization to the browser that began it. */
export const INTERACTION_COOKIE = 'signalbox_oauth_interaction'

/**
 * The name of the app whose authorization in this browser started the sign-in. `next` is the destination of the
 * sign-in.
 */
export async function findSignInApp(
  db: Database,
  { next, cookieHeader, now }: { next: string | undefined; cookieHeader: string | undefined; now: Date },
): Promise<string | undefined> {
  if (next?.startsWith(`${ENTRY}/`) !== true) return undefined
  const id = new URLSearchParams(next.split('?', 2)[1]).get('id')
  if (id === null || parseCookie(cookieHeader ?? '')[INTERACTION_COOKIE] !== id) return undefined
  return findAppName(db, id, now)
}
