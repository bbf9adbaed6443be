import { isStorableText } from '../../base/stored-text.ts'
import { Problem } from '../../http/problem/problem.ts'
import type { ProviderClient } from './provider-client.ts'

type Sender = Pick<ProviderClient, 'send'>

export interface OccupiedChannel {
  name: string
  /** Null where the provider does not count. */
  subscriptionCount: number | null
  /** Members of a presence channel; null for others. */
  memberCount: number | null
}

/** The occupied private and presence channels at the provider, by name. Throws 503 when it does not answer. */
export async function listOccupiedChannels(client: Sender): Promise<OccupiedChannel[]> {
  const [ofPrivate, ofPresence] = await Promise.all([
    readChannels(client, { filter_by_prefix: 'private-', info: 'subscription_count' }),
    readChannels(client, { filter_by_prefix: 'presence-', info: 'subscription_count,user_count' }),
  ])
  return [...ofPrivate, ...ofPresence].sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function readChannels(client: Sender, query: Record<string, string>): Promise<OccupiedChannel[]> {
  const answer = await client.send({ method: 'GET', path: '/channels', query })
  const channels = answer.kind === 'ok' ? answer.body.channels : undefined
  if (typeof channels !== 'object' || channels === null)
    throw new Problem('dependency_unavailable', 'The realtime provider did not say which channels are occupied.')
  return Object.entries(channels).map(([name, info]) => ({
    name,
    subscriptionCount: readCount(info, 'subscription_count'),
    memberCount: readCount(info, 'user_count'),
  }))
}

function readCount(info: unknown, member: string): number | null {
  const count = ((info ?? {}) as Record<string, unknown>)[member]
  return typeof count === 'number' ? count : null
}

const MEMBERS_LIMIT = 1_000

/** User ids longer than this are none of this service. */
const USER_ID_LIMIT = 200

/** The ids of at most 1,000 members of a presence channel. Throws 503 when the provider does not answer. */
export async function listMembers(client: Sender, channel: string): Promise<string[]> {
  const answer = await client.send({ method: 'GET', path: `/channels/${channel}/users` })
  const users = answer.kind === 'ok' ? answer.body.users : undefined
  if (!Array.isArray(users))
    throw new Problem('dependency_unavailable', 'The realtime provider did not say who is in the channel.')
  const ids = users.slice(0, MEMBERS_LIMIT).flatMap((user: unknown) => {
    const { id } = (user ?? {}) as { id?: unknown }
    return typeof id === 'string' && id.length <= USER_ID_LIMIT && isStorableText(id) ? [id] : []
  })
  return [...new Set(ids)]
}
