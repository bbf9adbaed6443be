import { Problem } from '../../http/problem/problem.ts'
import type { ProviderClient } from './provider-client.ts'

/** A channel with subscribers. */
export interface OccupiedChannel {
  name: string
  /** Null where the provider does not count. */
  subscriptionCount: number | null
}

/** Lists the occupied private channels at the provider. Throws 503 when it does not answer. */
export async function listOccupiedChannels(client: Pick<ProviderClient, 'send'>): Promise<OccupiedChannel[]> {
  const query = { filter_by_prefix: 'private-', info: 'subscription_count' }
  const answer = await client.send({ method: 'GET', path: '/channels', query })
  const channels = answer.kind === 'ok' ? answer.body.channels : undefined
  if (typeof channels !== 'object' || channels === null)
    throw new Problem('dependency_unavailable', 'The realtime provider did not say which channels are occupied.')
  return Object.entries(channels)
    .map(([name, info]) => ({ name, subscriptionCount: readCount(info) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

function readCount(info: unknown): number | null {
  const { subscription_count: count } = (info ?? {}) as { subscription_count?: unknown }
  return typeof count === 'number' ? count : null
}
