import { randomUUID } from 'node:crypto'
import type { KoaContextWithOIDC } from 'oidc-provider'
import { describe, expect, test } from 'vitest'
import type { SessionId, UserId } from '../../../base/id.ts'
import { hashStateId } from '../../grant/state-id.ts'
import {
  type BatchRow,
  findBegunState,
  findBrowserOfRows,
  findKnownRow,
  findRequestState,
  forgetRow,
  hasWrites,
  keyOf,
  leaveToEnd,
  spendAtEnd,
} from './request-state.ts'

const open = (route = 'token') => ({ oidc: { route } }) as unknown as KoaContextWithOIDC
const ID = hashStateId('one')
const rowOf = (model: string) => ({ model, idHash: ID, payload: { name: model } }) as unknown as BatchRow
const SPENT = { model: 'AuthorizationCode', idHash: ID, consumedBy: null }

test('a request has one state, and what is outside of one has none', () => {
  const ctx = open()
  expect(findBegunState(ctx)).toBeUndefined()
  const state = findRequestState(ctx)
  expect(findRequestState(ctx)).toBe(state)
  expect(findBegunState(ctx)).toBe(state)
  expect(findRequestState(open())).not.toBe(state)
  expect([findRequestState(undefined), findBegunState(undefined)]).toEqual([undefined, undefined])
})

describe('a write', () => {
  test.each([
    ['authorization', 'Session', true],
    ['resume', 'Grant', true],
    ['token', 'AccessToken', true],
    ['token', 'AuthorizationCode', true],
    ['authorization', 'Interaction', true],
    ['token', 'RefreshToken', true],
    ['token', 'DeviceCode', false],
    ['token', 'ReplayDetection', false],
    ['device_authorization', 'AccessToken', false],
  ])('at %s of a %s waits for the end of the request: %s', async (route, model, isLeft) => {
    const ctx = open(route)
    expect(leaveToEnd(ctx, rowOf(model))).toBe(isLeft)
    const state = findRequestState(ctx)
    expect([hasWrites(state), state.writes.size]).toEqual([isLeft, isLeft ? 1 : 0])
    // The request reads what it will write.
    const known = await findKnownRow(ctx, { model, idHash: ID })
    expect(known).toEqual(isLeft ? { payload: { name: model }, consumedAt: null, consumedBy: null } : undefined)
  })

  test('outside of a request waits for nothing', () => {
    expect(leaveToEnd(undefined, rowOf('AccessToken'))).toBe(false)
  })

  test('is forgotten with its row, and no other is', () => {
    const ctx = open()
    for (const model of ['AccessToken', 'RefreshToken']) leaveToEnd(ctx, rowOf(model))
    forgetRow(ctx, { model: 'AccessToken', idHash: ID })
    const { writes, rows } = findRequestState(ctx)
    const left = [keyOf('RefreshToken', ID)]
    expect([[...writes.keys()], [...rows.keys()]]).toEqual([left, left])
    expect(() => forgetRow(undefined, { model: 'AccessToken', idHash: ID })).not.toThrow()
  })
})

describe('a redemption', () => {
  test('at the token endpoint waits for the end of the request, the first of it alone', () => {
    const ctx = open()
    expect(hasWrites(findRequestState(ctx))).toBe(false)
    expect(spendAtEnd(ctx, SPENT)).toBe(true)
    expect(spendAtEnd(ctx, { ...SPENT, model: 'RefreshToken' })).toBe(false)
    expect(findRequestState(ctx).spent).toEqual(SPENT)
    expect(hasWrites(findRequestState(ctx))).toBe(true)
  })

  test('elsewhere waits for nothing', () => {
    const ctx = open('authorization')
    expect([spendAtEnd(ctx, SPENT), spendAtEnd(undefined, SPENT)]).toEqual([false, false])
    expect(findRequestState(ctx).spent).toBeUndefined()
  })
})

test('rows of an authorization are written for the session of its browser, and else for none that exists', () => {
  const sessionId = randomUUID() as SessionId
  const browser = { userId: randomUUID() as UserId, sessionId, clientId: undefined }
  const find = (route: string, isSignedIn: boolean) => {
    const ctx = open(route)
    const state = findRequestState(ctx)
    if (isSignedIn) state.browser = browser
    return findBrowserOfRows(ctx, state)
  }
  const none = '00000000-0000-0000-0000-000000000000'
  expect([find('authorization', true), find('authorization', false)]).toEqual([sessionId, none])
  expect(findBrowserOfRows(open('resume'), undefined)).toBe(none)
  // A request for tokens comes from no browser.
  expect([find('token', true), findBrowserOfRows(undefined, undefined)]).toEqual([null, null])
})
