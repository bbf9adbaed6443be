import pg from 'pg'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/harness/database/database.ts'
import { type KnownColumns, queryPrepared } from './prepared-query.ts'

let database: TestDatabase
const clients: pg.Client[] = []

beforeEach(async () => {
  database = await createTestDatabase()
  return async () => {
    await Promise.all(clients.splice(0).map((client) => client.end()))
    await database[Symbol.asyncDispose]()
  }
})

/** A connection of its own, and how often the driver asked it for columns. */
async function connect() {
  const client = new pg.Client({ connectionString: database.connectionString, pipeline: true } as pg.ClientConfig)
  await client.connect()
  clients.push(client)
  const { connection } = client as unknown as { connection: { describe(what: object): void } }
  const describeColumns = connection.describe.bind(connection)
  let described = 0
  connection.describe = (what) => {
    described += 1
    describeColumns(what)
  }
  const columns: KnownColumns = new Map()
  const query = (text: string, values: unknown[] = []) => queryPrepared(client, { name: text, text, values }, columns)
  return { query, countDescribed: () => described }
}

describe('a prepared query', () => {
  test('asks for its columns once a connection, and returns typed rows every time', async () => {
    const { query, countDescribed } = await connect()
    const text = 'select $1::int as number, $2::timestamptz as time, null as nothing'
    const time = new Date('2030-01-02T03:04:05.678Z')
    for (const number of [1, 2, 3]) {
      const { rows, fields } = await query(text, [number, time])
      expect(rows).toEqual([{ number, time, nothing: null }])
      expect(fields.map(({ name }) => name)).toEqual(['number', 'time', 'nothing'])
    }
    expect(countDescribed()).toBe(1)
  })

  test('without rows is described once too, and says how many rows it changed', async () => {
    const { query, countDescribed } = await connect()
    await query('create temporary table kept (id int)')
    for (const id of [1, 2, 3]) {
      const { command, rowCount, rows } = await query('insert into kept (id) values ($1)', [id])
      expect({ command, rowCount, rows }).toEqual({ command: 'INSERT', rowCount: 1, rows: [] })
    }
    expect(countDescribed()).toBe(2)
  })

  test('returns its own rows when several are sent before the first is answered', async () => {
    const { query } = await connect()
    const texts = ['select $1::int as a', 'select $1::text as b, 2 as c']
    const ask = async () => {
      const results = await Promise.all([query(texts[0]!, [1]), query(texts[1]!, ['x']), query(texts[0]!, [3])])
      return results.map(({ rows }) => rows)
    }
    const expected = [[{ a: 1 }], [{ b: 'x', c: 2 }], [{ a: 3 }]]
    expect(await ask()).toEqual(expected)
    expect(await ask()).toEqual(expected)
  })

  test('that fails leaves the connection and its columns usable', async () => {
    const { query } = await connect()
    const text = 'select (10 / $1::int) as share'
    await expect(query(text, [0])).rejects.toMatchObject({ code: '22012' })
    expect((await query(text, [5])).rows).toEqual([{ share: 2 }])
    await expect(query(text, [0])).rejects.toMatchObject({ code: '22012' })
    expect((await query(text, [2])).rows).toEqual([{ share: 5 }])
  })
})
