import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventNameOf, isChange } from '../../src/http/route.ts'
import type { ContractWorld } from '../contract/contract-world.ts'
import { waitFor } from '../harness/wait.ts'
import { FORMS, findRouteOf, prepareRequest, REQUESTS, ROUTES, startRequestWorld } from './route-requests.ts'

/** The channel on which triggers notify of changes (`note_change` in the migrations). */
const CHANNEL = 'signalbox_change'

let world: ContractWorld
let listener: pg.Client
/** The notes that triggers sent since a request began. */
let sent: string[] = []
/** The notes that the closing statements of this process returned since then. */
let returned: string[] = []

beforeAll(async () => {
  world = await startRequestWorld()
  watchAnswers(world.app.database.pool)
  listener = new pg.Client(world.app.database.connectionString)
  await listener.connect()
  listener.on('notification', ({ payload = '' }) => sent.push(payload))
  await listener.query(`listen ${CHANNEL}`)
})
afterAll(async () => {
  await listener.end()
  await world[Symbol.asyncDispose]()
})

/** Collects the column `notes` of all answers that the pool gets. */
function watchAnswers(pool: pg.Pool): void {
  const watched = new WeakSet<pg.PoolClient>()
  pool.on('acquire', (client) => {
    if (watched.has(client)) return
    watched.add(client)
    const query = client.query.bind(client) as unknown as (...args: unknown[]) => Promise<pg.QueryResult> | undefined
    const watch = (...args: unknown[]) => {
      const answered = query(...args)
      answered?.then(
        ({ rows }) => {
          if (typeof rows?.[0]?.notes === 'string') returned.push(...rows[0].notes.split(','))
        },
        () => {},
      )
      return answered
    }
    Object.assign(client, { query: watch })
  })
}

/** Waits until every notification of earlier commits has arrived: they arrive in the order of the commits. */
async function settle(): Promise<void> {
  const mark = `mark ${crypto.randomUUID()}`
  await world.app.database.pool.query('select pg_notify($1, $2)', [CHANNEL, mark])
  await waitFor('the notifications', () => sent.includes(mark))
  sent = sent.filter((note) => note !== mark)
}

/** Whether the process drops what a note names: by this note, or by one that names the owner of the session or key. */
async function isReturned(note: string): Promise<boolean> {
  // Wakes the workers of provisioning; nothing is held of it.
  if (note === 'p') return true
  if (returned.includes('*') || returned.includes(note)) return true
  const [kind, id] = note.split(':')
  if (kind !== 's' && kind !== 'k') return false
  const table = kind === 's' ? 'session' : 'api_key'
  const { rows } = await world.app.database.pool.query(`select "user" from ${table} where document_id = $1`, [id])
  return returned.includes(`u:${rows[0]?.user}`)
}

const CHANGES = Object.entries({ ...REQUESTS, ...FORMS }).filter(([form]) => isChange(findRouteOf(form)))

/** The kinds of notes that all requests together sent. */
const kinds = new Set<string>()

it.each(CHANGES)(
  'the notes of %s reach the process that makes the change with its last statement',
  async (form, make) => {
    const { send } = await prepareRequest(findRouteOf(form), make)
    await settle()
    sent = []
    returned = []
    await send()
    await settle()
    const missing: string[] = []
    for (const note of sent) if (!(await isReturned(note))) missing.push(note)
    expect(missing).toEqual([])
    for (const note of sent) kinds.add(note.split(':')[0] as string)
  },
)

it('the changes of all routes together send every kind of note', () => {
  expect(CHANGES.map(([form]) => form)).toEqual(expect.arrayContaining(ROUTES.filter(isChange).map(eventNameOf)))
  expect([...kinds].sort()).toEqual(['*', 'c', 'k', 'l', 'p', 'r', 's', 't', 'u'])
})
