import { rowFields } from '../../../http/listing/listing.ts'
import { buildWholeList } from '../../../http/listing/page.ts'
import { Problem } from '../../../http/problem/problem.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { defineRow } from '../../../http/route/row-route.ts'
import { IdParams } from '../../../http/route/schema.ts'
import { NO_STORE } from '../../session/session.routes.ts'
import type { SocialLoginDeps } from '../social-login.routes.ts'
import {
  CreateIdentityBody,
  FlowStart,
  IdentityRow,
  LinkBody,
  ProviderParams,
  toIdentityRow,
} from '../social-login.schema.ts'
import { beginFlow, checkProvider, keepFlow } from '../social-login.ts'
import { selectIdentities } from '../user/identity.store.ts'
import { checkHasSession, linkIdentity, loadOwnIdentity, unlinkIdentity } from './identity.ts'

const IDENTITY_FIELDS = rowFields({
  provider: { type: 'text', sortable: true, like: 'few-rows' },
})

const OF_IDENTITY = { resource: 'identity', accountScope: 'none', access: 'caller', data: IdentityRow } as const

const identity = defineRow(
  { ...OF_IDENTITY, path: '/api/v3/identity/identity/{id}', params: IdParams },
  {
    noun: 'Identity',
    load: ({ db, params, caller }) => loadOwnIdentity(db, params.id, caller),
    toRow: toIdentityRow,
  },
)

/** The providers that a user has connected (docs/contract/social-login.md#connecting-providers). */
export const identityRoutes: Routes<SocialLoginDeps> = [
  identity.list(
    { summary: 'List the own identities at sign-in providers', list: IDENTITY_FIELDS },
    { rows: ({ db, caller }) => buildWholeList(selectIdentities(db, caller.userId)), message: 'Identities.' },
  ),
  defineRoute(
    {
      ...OF_IDENTITY,
      method: 'POST',
      path: '/api/v3/identity/identity/link/{provider}',
      action: 'link',
      event: 'none',
      strictRateLimit: true,
      summary: 'Begin to connect a provider with oneself',
      description:
        'Open the address of the answer in a browser. Its `redirect_url` gets `link_code`, which `POST /api/v3/identity/identity` takes within 60 seconds.',
      params: ProviderParams,
      body: LinkBody,
      data: FlowStart,
      problems: ['provider_unknown', 'redirect_url_not_allowed', 'permission_denied'],
    },
    {
      row: {
        find: async (deps: SocialLoginDeps, { params }) => checkProvider(deps, params.provider),
        neededBy: 'validation',
      },
      prepare: async (deps, { db, params, body, caller, now }) => {
        checkHasSession(caller)
        const flow = { provider: params.provider, redirectUrl: body.redirect_url, codeChallenge: null, browser: null }
        return beginFlow(deps, db, { ...flow, linkTo: caller.userId, now })
      },
      handle: async (_deps, { db, params, prepared, now }) => {
        await keepFlow(db, prepared, now)
        return {
          data: { redirectUrl: prepared.redirectUrl },
          message: 'Continue at the provider.',
          headers: NO_STORE,
          audit: { provider: params.provider },
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_IDENTITY,
      method: 'POST',
      path: '/api/v3/identity/identity',
      action: 'create',
      fresh: 'factor',
      strictRateLimit: true,
      status: 201,
      summary: 'Connect the provider of a link_code with oneself',
      description: 'The user who began the connection has to send the code. It is valid once.',
      body: CreateIdentityBody,
      problems: ['identity_not_linked', 'permission_denied'],
    },
    async (deps: SocialLoginDeps, { db, body, caller, now }) => {
      checkHasSession(caller)
      const result = await linkIdentity(deps, db, { code: body.code, caller, now })
      if (result.kind === 'refused') {
        const detail = 'The provider was not connected. Start again, with an identity that no other user has connected.'
        return { kind: 'refusal', problem: new Problem('identity_not_linked', detail, { reason: result.reason }) }
      }
      const { id, provider } = result.identity
      return {
        data: toIdentityRow(result.identity),
        message: 'Provider connected.',
        changed: [{ id, account: null }],
        location: `/api/v3/identity/identity/${id}`,
        audit: { provider },
      }
    },
  ),
  identity.read({ summary: 'Read one of the own identities' }),
  identity.delete(
    {
      summary: 'Disconnect a provider',
      description: 'Never the last way to sign in: a password, a passkey or another enabled provider has to remain.',
      problems: ['conflict', 'permission_denied'],
    },
    async (deps: SocialLoginDeps, { db, params, caller }) => {
      checkHasSession(caller)
      const row = await unlinkIdentity(deps, db, { id: params.id, caller })
      return { row, message: 'Provider disconnected.', audit: { provider: row.provider } }
    },
  ),
]
