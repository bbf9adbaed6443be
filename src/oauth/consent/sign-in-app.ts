import type { FlowCookies } from '../../identity/pages/browser/flow-cookie.ts'
import type { FindApp } from '../../identity/pages/sign-in/sign-in-goal.ts'
import { findAppName } from './interaction.store.ts'

/** The pages of an authorization, to which a sign-in may lead. */
export const ENTRY = '/auth/oauth'

/** Finds the name of the app whose authorization in this browser started a sign-in, by the destination of the sign-in. */
export function buildFindApp(flowCookies: FlowCookies): FindApp {
  return async (db, { next, cookieHeader, now }) => {
    if (next?.startsWith(`${ENTRY}/`) !== true) return undefined
    const id = new URLSearchParams(next.split('?', 2)[1]).get('id') ?? undefined
    return id !== undefined && flowCookies.isOwn(cookieHeader, id) ? findAppName(db, id, now) : undefined
  }
}
