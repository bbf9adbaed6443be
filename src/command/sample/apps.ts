import { DAY_MS, HOUR_MS, MINUTE_MS, type SamplePlan, type SampleRows } from './sample-plan.ts'
import type { SampleUser } from './users.ts'

/** Third-party and first-party apps: name, publisher, type, kind. */
const APPS = [
  ['Storefront', 'Signalbox samples', 'confidential', 'web', true],
  ['Field app', 'Signalbox samples', 'public', 'native', true],
  ['Ledgerly', 'Ledgerly Ltd', 'confidential', 'web', false],
  ['Parcel Board', 'Parcel Board Inc', 'confidential', 'web', false],
  ['Insight Desk', 'Insight Desk GmbH', 'public', 'web', false],
  ['Command line', 'Signalbox samples', 'public', 'native', true],
] as const

/** Scopes of every app of the sample, and of each grant. */
export const SCOPES = ['openid', 'profile', 'email', 'offline_access']

/** A decision of a user about an app; without a grant, a refusal. */
export interface SampleDecision {
  client: string
  user: SampleUser
  grant: string | null
  at: Date
}

/** Builds OAuth apps, and what users allowed them and refused. */
export function buildApps(
  plan: SamplePlan,
  users: readonly SampleUser[],
): { rows: SampleRows; apps: { id: string; at: Date }[]; decisions: SampleDecision[] } {
  const { dice, idOf, before } = plan
  const clients = APPS.map(([name, publisher, type, application_type, first_party], number) => {
    const slug = name.toLowerCase().replaceAll(' ', '-')
    const at = before((34 + 9 * number) * DAY_MS)
    return {
      ...{ document_id: idOf('oauth client', number), name, publisher, type, application_type, first_party },
      redirect_uris: [application_type === 'native' ? 'http://127.0.0.1/callback' : `https://${slug}.example/callback`],
      post_logout_redirect_uris: application_type === 'native' ? [] : [`https://${slug}.example/`],
      ...{ grant_types: ['authorization_code', 'refresh_token'], scopes: SCOPES, registration: 'administrator' },
      ...{ id_token_signed_response_alg: 'ES256', dpop_bound_access_tokens: false, created_at: at, updated_at: at },
    }
  })
  const oauth_client_secret = clients
    .filter(({ type }) => type === 'confidential')
    .map(({ document_id: client, created_at }, number) => ({
      // The hash of unknown bytes.
      ...{ document_id: idOf('oauth client secret', number), client, secret_hash: plan.random.bytes(32), created_at },
      last_used_at: before(dice.between(1, 90) * MINUTE_MS),
    }))
  const oauth_grant = clients.flatMap(({ document_id: client }, app) =>
    users
      .filter(({ isActived }, number) => isActived && (number + app) % 4 === 0)
      .map((user, number) => {
        const at = before(Math.min(plan.now.getTime() - user.createdAt.getTime(), dice.between(1, 27) * DAY_MS))
        const isRevoked = number % 7 === 6
        return {
          ...{ document_id: idOf('oauth grant', app * 1_000 + number), user: user.id, client, created_at: at },
          ...{ scopes: SCOPES, refused_scopes: [], redirect_uris: [], updated_at: isRevoked ? before(HOUR_MS) : at },
          revoked_at: isRevoked ? before(HOUR_MS) : null,
        }
      }),
  )
  const byId = new Map(users.map((user) => [user.id as string, user]))
  const decisions = oauth_grant.flatMap(({ document_id: grant, user: id, client, created_at: at }, number) => {
    const user = byId.get(id)
    if (!user) return []
    const refused = number % 5 === 0 ? [{ client, user, grant: null, at: new Date(at.getTime() - HOUR_MS) }] : []
    return [...refused, { client, user, grant, at }]
  })
  const oauth_grant_use = oauth_grant.map(({ document_id: grant_id, client, updated_at: used_at }) => {
    return { grant_id, client, used_at }
  })
  return {
    rows: { oauth_client: clients, oauth_client_secret, oauth_grant, oauth_grant_use },
    apps: clients.map(({ document_id: id, created_at: at }) => ({ id, at })),
    decisions,
  }
}
