import type { EventId } from '../base/id.ts'
import { defineRoute, type Routes } from '../http/route/route.ts'
import { NO_STORE } from '../identity/session/session.routes.ts'
import { type AuthorizationDeps, authorizeMember } from './authorization/authorization.ts'
import { AUTH_PERMISSION } from './authorization/channel-access.ts'
import { AuthorizeMemberBody, MemberAuthorization, ResumeBody, ResumedChannel } from './realtime.schema.ts'
import { replayChannel } from './replay/replay.ts'

const OF_PAGES = {
  resource: 'realtime',
  accountScope: 'none',
  permission: AUTH_PERMISSION,
  ownAccounts: true,
  writes: false,
} as const

/** Calls of pages with `@signalbox/realtime`, beyond the Pusher protocol (docs/contract/realtime.md#resume, #presence). */
export const realtimePageRoutes: Routes<AuthorizationDeps> = [
  defineRoute(
    {
      ...OF_PAGES,
      method: 'POST',
      path: '/api/v3/realtime/realtime/presence-auth',
      action: 'presence-auth',
      takesForm: true,
      bare: true,
      summary: 'Authorize a member of a presence channel',
      description:
        'For client libraries of the Pusher protocol. Who may join the private channel of an account or a contract may join its presence channel, and is shown to its members with id and name.',
      body: AuthorizeMemberBody,
      data: MemberAuthorization,
      problems: ['permission_denied', 'realtime_unavailable'],
    },
    async (deps: AuthorizationDeps, { db, body, caller, now }) => {
      const request = { socketId: body.socket_id, channel: body.channel_name, caller, now }
      return { data: await authorizeMember(deps, db, request), message: 'Authorized.', headers: NO_STORE }
    },
  ),
  defineRoute(
    {
      ...OF_PAGES,
      method: 'POST',
      path: '/api/v3/realtime/realtime/resume',
      action: 'resume',
      cell: { by: 'all' },
      summary: 'Read what a channel published while a page was away',
      description:
        'The messages since a position, judged as a subscription is: fewer than 1,000, of the last two minutes. Beyond these `missed` is true.',
      body: ResumeBody,
      data: ResumedChannel,
      problems: ['permission_denied', 'realtime_unavailable'],
    },
    async (deps: AuthorizationDeps, { db, body, caller, now, merged }) => {
      const position = { after: (body.after ?? null) as EventId | null, since: new Date(body.since) }
      const data = await replayChannel(deps, db, { channel: body.channel_name, ...position, caller, now, merged })
      return { data, message: 'Messages since the position.', headers: NO_STORE }
    },
  ),
]
