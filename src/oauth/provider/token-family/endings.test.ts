import { EventEmitter } from 'node:events'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { expect, test } from 'vitest'
import { finishEndings, followEndings, hasEndings, type ProviderEndings } from './endings.ts'

const REQUEST = { ip: '127.0.0.1', res: { getHeader: () => undefined } }

test('a client reads its answer when all that ended with it has ended', async () => {
  const provider = new EventEmitter()
  const ended: string[] = []
  const endings: ProviderEndings = {
    endBrowserSession: async () => [],
    recordFamilyEnd: async (grantId, cause) => {
      await new Promise(setImmediate)
      ended.push(`${grantId} ${cause}`)
    },
    recordRefusedUser: async () => {},
  }
  followEndings(provider as unknown as Provider, endings)
  const ctx = { ...REQUEST, oidc: { route: 'revocation' } } as unknown as KoaContextWithOIDC
  expect(hasEndings(ctx)).toBe(false)
  for (const family of ['one.a', 'two.b']) provider.emit('grant.revoked', ctx, family)
  expect([hasEndings(ctx), ended]).toEqual([true, []])
  await finishEndings(endings, ctx)
  expect(ended).toEqual(['one revoked', 'two revoked'])
})
