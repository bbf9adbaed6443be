import { expect, test } from 'vitest'
import { buildSupabaseClient } from './supabase-client.ts'

test.each([
  ['an object', '{"id":"1"}', { ok: true, data: { id: '1' } }],
  ['a text', '"<html>"', { ok: false, status: 502, code: 'unknown' }],
  ['a number', '7', { ok: false, status: 502, code: 'unknown' }],
  ['true', 'true', { ok: false, status: 502, code: 'unknown' }],
  ['null', 'null', { ok: false, status: 502, code: 'unknown' }],
  ['no JSON', '<html>', { ok: false, status: 502, code: 'unknown' }],
])('an answer that is %s counts as data only as an object', async (_what, body, answer) => {
  const fetch = async () => new Response(body)
  const client = buildSupabaseClient({ url: 'https://auth.test', anonKey: undefined, fetch })
  expect(await client.readUser('token')).toEqual(answer)
})
