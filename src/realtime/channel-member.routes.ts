import { defineRoute, type Routes } from '../http/route/route.ts'
import { type AuthorizationDeps, requireApp } from './authorization/authorization.ts'
import { readJoins } from './channel/channel-event.store.ts'
import { listMembers } from './provider/occupied-channels.ts'
import type { ProviderClient } from './provider/provider-client.ts'
import { ChannelMembers, ChannelParams } from './realtime.schema.ts'

export interface ChannelMemberDeps extends AuthorizationDeps {
  client: Pick<ProviderClient, 'send'> | undefined
}

/** Who is in a presence channel, for operators (docs/contract/realtime.md#inspector). */
export const channelMemberRoutes: Routes<ChannelMemberDeps> = [
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/realtime/channel/{name}/member',
      resource: 'realtime-channel',
      action: 'find-members',
      permission: 'realtime:inspect',
      accountScope: 'none',
      summary: 'List the members of a presence channel',
      description:
        'As the realtime provider reports them, the longest present first; 1,000 at most. A channel that nobody is in has none.',
      params: ChannelParams,
      data: ChannelMembers,
      problems: ['realtime_unavailable'],
    },
    {
      prepare: async (deps: ChannelMemberDeps, { params }) => {
        requireApp(deps)
        return deps.client ? listMembers(deps.client, params.name) : []
      },
      handle: async (_deps, { db, params, prepared: users }) => {
        const joins = await readJoins(db, { channel: params.name, users })
        const members = users.map((user) => ({ user_id: user, since: joins.get(user)?.toISOString() ?? null }))
        // Nothing was reported of those that came before all others.
        members.sort((a, b) => ((a.since ?? '') < (b.since ?? '') ? -1 : 1))
        return { data: members, message: 'Members of the channel.' }
      },
    },
  ),
]
