import { describe, expect, test } from 'vitest'
import type { CallbackDeps } from '../../delivery/post/callback-field.ts'
import { checkKeptTarget, checkNewTarget, pickTarget } from './mode.ts'

const resolved: string[] = []
const deps: CallbackDeps = {
  callbackRules: { allowHttp: false, allowedPrivateTargets: [] },
  lookup: async (name) => {
    resolved.push(name)
    return ['93.184.215.14']
  },
}
const refusedFor = (path: string, code: string) => ({
  code: 'validation_failed',
  errors: [expect.objectContaining({ path, code })],
})
const PUSH = { mode: 'push', url: 'https://a.example.com/' } as const
const PULL = { mode: 'pull', url: '' } as const

test('a target is a mode and a URL alone', () => {
  expect(pickTarget({ ...PUSH, name: 'a' } as never)).toEqual(PUSH)
})

describe('a new webhook', () => {
  test('posts by default, to a URL whose name is looked up', async () => {
    await expect(checkNewTarget(deps, {})).rejects.toMatchObject(refusedFor('url', 'required'))
    await expect(checkNewTarget(deps, { mode: 'push' })).rejects.toMatchObject(refusedFor('url', 'required'))
    await checkNewTarget(deps, { url: 'https://hooks.example.com/', headers: { a: 'b' }, max_per_second: 5 })
    expect(resolved).toEqual(['hooks.example.com.'])
    await expect(checkNewTarget(deps, { url: 'https://127.0.0.1/' })).rejects.toMatchObject(
      refusedFor('url', 'url_host_not_public'),
    )
  })

  test('that pulls has nothing of a POST', async () => {
    for (const headers of [undefined, {}])
      for (const limit of [undefined, null])
        await checkNewTarget(deps, { mode: 'pull', ...(headers && { headers }), max_per_second: limit ?? null })
    await checkNewTarget(deps, { mode: 'pull' })
    const refused = (change: object) => checkNewTarget(deps, { mode: 'pull', ...change })
    await expect(refused({ url: '' })).rejects.toMatchObject(refusedFor('url', 'not_of_mode'))
    await expect(refused({ headers: { a: 'b' } })).rejects.toMatchObject(refusedFor('headers', 'not_of_mode'))
    await expect(refused({ max_per_second: 1 })).rejects.toMatchObject(refusedFor('max_per_second', 'not_of_mode'))
  })
})

describe('a change', () => {
  test('of a webhook that posts leaves a URL that is allowed, and looks no name up', () => {
    const before = resolved.length
    checkKeptTarget(deps, PUSH, {})
    checkKeptTarget(deps, PUSH, { url: 'https://b.example.com/', maxPerSecond: 5 })
    expect(() => checkKeptTarget(deps, PUSH, { url: 'https://127.0.0.1/' })).toThrow(
      expect.objectContaining(refusedFor('url', 'url_host_not_public')),
    )
    const lost = { ...PUSH, url: 'https://127.0.0.1/' }
    expect(() => checkKeptTarget(deps, lost, {})).toThrow(
      expect.objectContaining(refusedFor('url', 'url_host_not_public')),
    )
    checkKeptTarget(deps, lost, { url: PUSH.url })
    expect(resolved).toHaveLength(before)
  })

  test('of a webhook that pulls gives it nothing of a POST', () => {
    checkKeptTarget(deps, PULL, { headers: {} as never, maxPerSecond: null })
    expect(() => checkKeptTarget(deps, PULL, { url: PUSH.url })).toThrow(
      expect.objectContaining(refusedFor('url', 'not_of_mode')),
    )
    expect(() => checkKeptTarget(deps, PULL, { maxPerSecond: 3 })).toThrow(
      expect.objectContaining(refusedFor('max_per_second', 'not_of_mode')),
    )
  })
})
