import type { KoaContextWithOIDC } from 'oidc-provider'
import { beforeEach, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { hashStateId } from '../grant/state-id.ts'
import { type RequestEndDeps, writeAtRequestEnd } from './request-end.ts'
import { findRequestState, spendAtEnd } from './state/request-state.ts'
import { consumeState, findState, upsertState } from './state/state.store.ts'

const FAMILY = 'grant.family'
const clock = buildManualClock()
let revoked: unknown[]
const database = await openForFile(createTestDatabase())
beforeEach(() => {
  revoked = []
})

const keep = (model: string, id: string) =>
  upsertState(database.db, {
    ...{ model, idHash: hashStateId(id), payload: { grantId: FAMILY }, grantId: FAMILY },
    ...{ consent: null, uid: null, userCodeHash: null, expiresAt: new Date(clock.now() + 60_000) },
  })

const find = (model: string, id: string) =>
  findState(database.db, { model, idHash: hashStateId(id), now: new Date(clock.now()) })

/** The end of a request to the token endpoint that spends what was read before. Returns its answer. */
async function redeem(model: string, id: string) {
  const deps = {
    ...{ db: database.db, machineClock: clock, refresh: { repeatMs: 0 } },
    pages: { renderError: async () => {} },
  } as unknown as RequestEndDeps
  const provider = { emit: (name: string, _ctx: unknown, about: unknown) => revoked.push([name, about]) }
  const issued = { status: 200, body: { access_token: 'issued' }, remove: () => {}, oidc: { route: 'token', provider } }
  const ctx = issued as unknown as KoaContextWithOIDC
  spendAtEnd(ctx, { model, idHash: hashStateId(id), consumedBy: null })
  await writeAtRequestEnd(deps, ctx, findRequestState(ctx)!)
  return { status: ctx.status, body: ctx.body }
}

const REFUSED = { status: 400, body: { error: 'invalid_grant', error_description: 'grant request is invalid' } }

test('a code that another request has spent meanwhile gives no tokens, and ends its family', async () => {
  await keep('Grant', FAMILY)
  await keep('AuthorizationCode', 'code')
  const key = { model: 'AuthorizationCode', idHash: hashStateId('code'), consumedBy: null }
  expect(await consumeState(database.db, { ...key, now: new Date(clock.now()) })).toBe(true)
  expect(await redeem('AuthorizationCode', 'code')).toEqual(REFUSED)
  expect(await find('Grant', FAMILY)).toBeUndefined()
  expect(revoked).toEqual([['grant.revoked', FAMILY]])
})

test('a code gives its tokens once', async () => {
  await keep('AuthorizationCode', 'fresh')
  expect(await redeem('AuthorizationCode', 'fresh')).toMatchObject({ status: 200, body: { access_token: 'issued' } })
  expect(await redeem('AuthorizationCode', 'fresh')).toEqual(REFUSED)
})

test('a refresh token that ended meanwhile with its family is refused like a spent one', async () => {
  expect(await redeem('RefreshToken', 'gone')).toEqual(REFUSED)
  expect(revoked).toEqual([])
})

test.each([
  ['token', { error: 'server_error', error_description: 'oops! something went wrong' }, []],
  ['authorization', 'a page', ['a page']],
])(
  'a fault of the state answers the route %s as the provider answers its own, and nothing that was prepared',
  async (route, body, pages) => {
    const rendered: unknown[] = []
    const removed: string[] = []
    const deps = {
      ...{ db: database.db, refresh: { repeatMs: 0 } },
      machineClock: {
        now: () => {
          throw new Error('no time')
        },
      },
      pages: {
        renderError: async (ctx: KoaContextWithOIDC) => {
          rendered.push('a page')
          ctx.body = 'a page'
        },
      },
    } as unknown as RequestEndDeps
    const provider = { emit: (name: string) => revoked.push(name) }
    const prepared = { status: 303, body: { code: 'issued' }, remove: (name: string) => removed.push(name) }
    const ctx = { ...prepared, oidc: { route, provider } } as unknown as KoaContextWithOIDC
    spendAtEnd(ctx, { model: 'AuthorizationCode', idHash: hashStateId('code'), consumedBy: null })
    await writeAtRequestEnd(deps, ctx, findRequestState(ctx)!)
    expect([ctx.status, ctx.body, rendered, removed, revoked]).toEqual([
      ...[500, body, pages, ['location', 'set-cookie'], ['server_error']],
    ])
  },
)
