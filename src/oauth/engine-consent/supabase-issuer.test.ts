import { expect, test } from 'vitest'
import type { SupabaseAnswer } from '../../identity/engine/supabase/supabase-client.ts'
import { buildSupabaseIssuer } from './supabase-issuer.ts'

const ask = (answer: SupabaseAnswer) =>
  buildSupabaseIssuer({ client: { readUser: async () => answer } } as unknown as Parameters<
    typeof buildSupabaseIssuer
  >[0]).askOnline?.('token')

test('the user of a token lives while the engine says so; where the engine is at fault, nobody is judged', async () => {
  expect(await ask({ ok: true, data: {} })).toEqual({ isLiving: true })
  for (const status of [400, 401, 403, 428, 430, 499])
    expect(await ask({ ok: false, status, code: 'banned' })).toEqual({ isLiving: false, reason: 'engine_banned' })
  for (const status of [429, 500, 503]) await expect(ask({ ok: false, status, code: 'busy' })).rejects.toThrow('busy')
})
