import { describe, expect, test } from 'vitest'
import { Type } from '../shape/schema-type.ts'
import { defineRoute } from './route.ts'

const DECLARATION = {
  method: 'POST',
  path: '/api/v3/test/test',
  resource: 'test',
  action: 'create',
  accountScope: 'none',
  summary: 'A test',
  data: Type.Object({}),
} as const
const handle = async () => ({ data: {}, message: 'Done.' })

describe('the declaration of a route', () => {
  test('holds every member that a route may have', () => {
    expect(defineRoute(DECLARATION, { handle })).toEqual({ ...DECLARATION, handle })
  })

  test('has the function alone where the handle is the only step', () => {
    expect(defineRoute(DECLARATION, handle)).toEqual({ ...DECLARATION, handle })
    // @ts-expect-error the handle has the type of its data
    expect(defineRoute(DECLARATION, async () => ({ data: 1, message: 'Done.' })).handle).not.toBe(handle)
  })

  test('is refused with a member that no route has, by the compiler and when it is loaded', () => {
    const load = () =>
      defineRoute(
        {
          ...DECLARATION,
          // @ts-expect-error no route has this member
          transaction: false,
        },
        { handle },
      )
    expect(load).toThrow('POST /api/v3/test/test has transaction, which no route has')
  })

  test('is refused with a step that no route has, by the compiler and when it is loaded', () => {
    // @ts-expect-error no route has this step
    const load = () => defineRoute(DECLARATION, { handle, after: handle })
    expect(load).toThrow('has after, which no route has')
  })

  test('is refused with a member that no look-up of a row has, by the compiler and when it is loaded', () => {
    const find = async () => 1
    // @ts-expect-error no look-up has this member
    const load = () => defineRoute(DECLARATION, { row: { find, neededBy: 'handle', lock: true }, handle })
    expect(load).toThrow('has lock, which no route has')
  })

  test('gives the row to a handle that needs it, and to no other', () => {
    const find = async () => ({ name: 'found' })
    const row = { find, neededBy: 'handle' } as const
    const given = defineRoute(DECLARATION, {
      row,
      handle: async (_deps, { target }) => ({ data: {}, message: target.name }),
    })
    const validated = defineRoute(DECLARATION, {
      row: { find, neededBy: 'validation' },
      // @ts-expect-error the handle finds its row itself
      handle: async (_deps, { target }) => ({ data: {}, message: target.name }),
    })
    expect([given.row?.neededBy, validated.row?.neededBy]).toEqual(['handle', 'validation'])
  })
})
