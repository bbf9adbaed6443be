import type { SessionId } from '../../base/id.ts'
import type { SessionRecord } from '../../identity/session/session.store.ts'
import { loadSession } from '../../identity/session/session.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { PROVIDER_PATH } from '../provider/provider-source.ts'
import type { Interaction } from './interaction.store.ts'

/** Whether a session was opened, or its user authenticated again, since the question. */
export const isSignedInSince = ({ createdAt }: Interaction, { authTime }: SessionRecord): boolean =>
  Math.floor(authTime.getTime() / 1000) >= Math.floor(createdAt.getTime() / 1000)

/**
 * The path that restarts the authorization request, with all its parameters, pushed ones too. A sign-in and a switch of
 * the user are requested again, unless the user of `session` has just done so. A device restarts with its code.
 */
function buildRestartPath(interaction: Interaction, session: SessionRecord | undefined): string {
  const { params, returnTo } = interaction
  if (new URL(returnTo).pathname.startsWith(`${PROVIDER_PATH}/device/`)) return `${PROVIDER_PATH}/device`
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params))
    for (const item of [value ?? []].flat()) if (name !== 'prompt') query.append(name, item)
  const prompts = typeof params.prompt === 'string' ? params.prompt.split(' ') : []
  const isDone = session !== undefined && isSignedInSince(interaction, session)
  const rest = isDone ? prompts.filter((prompt) => prompt !== 'login' && prompt !== 'select_account') : prompts
  if (rest.length > 0) query.set('prompt', rest.join(' '))
  return `${PROVIDER_PATH}/authorize?${query}`
}

/** Restarts an authorization for the user who is now signed in in this browser. */
export async function findRestartPath(
  db: Database,
  interaction: Interaction,
  user: { sessionId: SessionId } | undefined,
): Promise<string> {
  return buildRestartPath(interaction, user && (await loadSession(db, user.sessionId)))
}
