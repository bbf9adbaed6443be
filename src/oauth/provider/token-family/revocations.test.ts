import { EventEmitter } from 'node:events'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { expect, test } from 'vitest'
import { finishRevocations, followRevocations, hasRevocations, type ProviderRevocations } from './revocations.ts'

const REQUEST = { ip: '127.0.0.1', res: { getHeader: () => undefined } }

test('a client reads its answer when all that ended with it has ended', async () => {
  const provider = new EventEmitter()
  const ended: string[] = []
  const revocations: ProviderRevocations = {
    endBrowserSession: async () => [],
    recordTokenFamilyEnd: async (grantId, cause) => {
      await new Promise(setImmediate)
      ended.push(`${grantId} ${cause}`)
    },
    recordRefusedUser: async () => {},
  }
  followRevocations(provider as unknown as Provider, revocations)
  const ctx = { ...REQUEST, oidc: { route: 'revocation' } } as unknown as KoaContextWithOIDC
  expect(hasRevocations(ctx)).toBe(false)
  for (const tokenFamily of ['one.a', 'two.b']) provider.emit('grant.revoked', ctx, tokenFamily)
  expect([hasRevocations(ctx), ended]).toEqual([true, []])
  await finishRevocations(revocations, ctx)
  expect(ended).toEqual(['one revoked', 'two revoked'])
})
