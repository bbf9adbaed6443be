import { defineRoute, type Routes } from '../../http/route/route.ts'
import { enumSchema, IdParams, namedObject } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { rowWithin } from '../reach/account-reach.ts'
import { BY_WEBHOOK } from '../reach/row-owner.ts'
import { KEY_SET_SECONDS, loadKeySet, rotateSigningKey, type SigningKeyDeps } from './signing-key.ts'
import { WebhookRow } from './webhook.schema.ts'
import { toWebhookRow } from './webhook.store.ts'

/** A JWK set (RFC 7517) of Ed25519 public keys (RFC 8037). */
const KeySet = namedObject('WebhookKeySet', {
  keys: Type.Array(
    namedObject('WebhookPublicKey', {
      kty: enumSchema(['OKP']),
      crv: enumSchema(['Ed25519']),
      x: Type.String(),
      kid: Type.String({ description: 'The thumbprint of the key (RFC 7638).' }),
      alg: enumSchema(['EdDSA']),
      use: enumSchema(['sig']),
    }),
  ),
})

const KEY_SET_HEADERS = { 'cache-control': `public, max-age=${KEY_SET_SECONDS}` }

/** The keys of asymmetric signatures (docs/contract/webhooks.md#asymmetric-signature). */
export const signingKeyRoutes: Routes<SigningKeyDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/webhook/webhook/{id}/rotate-key',
      resource: 'webhook',
      action: 'rotate-key',
      cell: BY_WEBHOOK,
      accountScope: 'account',
      ownAccounts: true,
      summary: 'Replace the key of asymmetric signatures',
      description:
        'New attempts are signed with the new key only. The former public key stays in the key set for 24 hours, and ' +
        'until then another rotation is 409.',
      params: IdParams,
      data: WebhookRow,
      problems: ['conflict'],
    },
    {
      row: rowWithin('webhook'),
      handle: async (deps: SigningKeyDeps, { db, params, caller, now }) => {
        const webhook = await rotateSigningKey(deps, db, params.id, { by: caller.userId, now })
        return {
          data: toWebhookRow(webhook),
          message: 'Key rotated. The former public key stays in the key set for 24 hours.',
          changed: [{ id: webhook.id, account: webhook.account }],
        }
      },
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: '/api/v3/webhook/webhook/{id}/jwks',
      resource: 'webhook',
      action: 'find-keys',
      cell: BY_WEBHOOK,
      accountScope: 'none',
      access: 'public',
      event: 'none',
      bare: true,
      hasEntityTag: true,
      summary: 'Read the public keys of a webhook',
      description: 'A JWK set (RFC 7517) of the Ed25519 keys that verify its asymmetric signatures. Needs no token.',
      params: IdParams,
      data: KeySet,
    },
    async (_deps: SigningKeyDeps, { db, params, now }) => ({
      data: await loadKeySet(db, params.id, now),
      message: 'Keys.',
      headers: KEY_SET_HEADERS,
    }),
  ),
]
