import { describe, expect, test } from 'vitest'
import type { AccountId } from '../../base/id.ts'
import { Type } from '../shape/schema-type.ts'
import { defineRoute, type Route } from './route.ts'
import { defineRow } from './row-route.ts'

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
  test('has the function alone where the handle is the only step', () => {
    expect(defineRoute(DECLARATION, handle)).toEqual({ ...DECLARATION, handle })
    // @ts-expect-error the handle has the type of its data
    expect(defineRoute(DECLARATION, async () => ({ data: 1, message: 'Done.' })).handle).not.toBe(handle)
  })

  test('is refused by the compiler with a member, a step or a member of the look-up that no route has', () => {
    // @ts-expect-error no route has this member
    defineRoute({ ...DECLARATION, transaction: false }, { handle })
    // @ts-expect-error no route has this step
    defineRoute(DECLARATION, { handle, after: handle })
    // @ts-expect-error no look-up has this member
    defineRoute(DECLARATION, { row: { find: async () => 1, neededBy: 'handle', lock: true }, handle })
    expect(Object.keys(defineRoute(DECLARATION, { handle }))).toEqual([...Object.keys(DECLARATION), 'handle'])
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

describe('the routes of a row', () => {
  interface Found {
    id: string
    account: AccountId
    name: string
  }
  const Row = Type.Object({ document_id: Type.String(), name: Type.String() })
  const WithSecret = Type.Object({ document_id: Type.String(), name: Type.String(), secret: Type.String() })
  const found: Found = { id: 'i', account: 'a' as AccountId, name: 'new' }
  const row = defineRow(
    {
      resource: 'test',
      path: '/api/v3/test/test/{id}',
      accountScope: 'account',
      rowTag: ['name'],
      params: Type.Object({ id: Type.String() }),
      data: Row,
    },
    {
      noun: 'Test',
      load: async ({ params }) => ({ ...found, id: params.id }),
      toRow: ({ id, name }: Found) => ({ document_id: id, name }),
    },
  )
  const run = (route: Route<unknown>, request: object = {}) => route.handle(undefined, request as never)

  test('declare each fact once: those of the list and the creation are at the path of all rows', () => {
    const list = row.list({ summary: 'All', list: {} }, { rows: () => ({}) as never, message: 'Tests.' })
    const create = row.create({ summary: 'New' }, async () => ({ row: found }))
    const remove = row.delete({ summary: 'Away' }, async () => ({ row: found }))
    const ofAll = { path: '/api/v3/test/test', params: undefined, rowTag: undefined, row: undefined }
    expect(list).toMatchObject({ method: 'GET', action: 'find-all', data: Row })
    expect(create).toMatchObject({ method: 'POST', action: 'create', status: 201 })
    for (const route of [list, create]) expect({ ...ofAll, ...route }).toMatchObject(ofAll)
    expect(row.read({ summary: 'One' })).toMatchObject({ method: 'GET', action: 'find-one', rowTag: ['name'] })
    expect(remove).toMatchObject({ method: 'DELETE', action: 'delete', path: '/api/v3/test/test/{id}' })
    expect(remove).not.toHaveProperty('rowTag')
  })

  test('answer with the row, its event and its path', async () => {
    const create = row.create({ summary: 'New' }, async () => ({ row: found }))
    const data = { document_id: 'i', name: 'new' }
    const changed = [{ id: 'i', account: 'a' }]
    expect(await run(create)).toEqual({ data, message: 'Test created.', changed, location: '/api/v3/test/test/i' })
    const update = row.update({ summary: 'Change' }, async () => ({ row: found, before: { ...found, name: 'old' } }))
    const before = { document_id: 'i', name: 'old' }
    expect(update).toMatchObject({ method: 'PATCH', action: 'update', rowTag: ['name'] })
    expect(await run(update)).toEqual({ data, before, message: 'Test updated.', changed })
  })

  test('record no event for a change of nothing', async () => {
    const update = row.update({ summary: 'Change' }, async () => ({ row: found, isChanged: false }))
    expect(await run(update)).toMatchObject({ message: 'Test unchanged.', changed: [] })
  })

  test('find the row before a change is validated, unless the change has another look-up', async () => {
    const find = async () => ({ ...found, name: 'locked' })
    const given = { method: 'POST', path: '/api/v3/test/test/{id}/move', action: 'move', summary: 'Move' } as const
    const plain = row.change(given, async () => ({ row: found, message: 'Moved.' }))
    expect(plain.row?.neededBy).toBe('validation')
    expect(await plain.row?.find(undefined, { params: { id: 'other' } } as never)).toEqual({ ...found, id: 'other' })
    const own = row.change(given, {
      row: { find, neededBy: 'handle' },
      handle: async (_deps, { target }) => ({ row: target, message: 'Moved.' }),
    })
    expect(await run(own, { target: await find() })).toMatchObject({ message: 'Moved.', data: { name: 'locked' } })
  })

  test('take the members of the answer that no row has', async () => {
    const rotate = row.create({ summary: 'New', data: WithSecret }, async () => ({ row: found, more: { secret: 's' } }))
    expect(await run(rotate)).toMatchObject({ data: { document_id: 'i', name: 'new', secret: 's' } })
    // @ts-expect-error the answer has a secret
    row.create({ summary: 'New', data: WithSecret }, async () => ({ row: found }))
  })
})
