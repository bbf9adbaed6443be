import Provider, { type Adapter, type AdapterPayload } from 'oidc-provider'
import { expect, test } from 'vitest'
import manifest from '../../../package.json' with { type: 'json' }
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildInvalidatedCache } from '../../postgres/connection/invalidated-cache.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { applyOverrides, OVERRIDES } from './overrides.ts'

const ID = 'client'

/** Dependencies of the overrides of other models. */
const OTHERS = {
  db: undefined as unknown as Database,
  machineClock: buildManualClock(),
  apiResource: 'http://127.0.0.1/api/v3',
  findUser: async () => undefined,
  findContext: () => undefined,
}

test('each override was read against the version of the library that is installed', () => {
  expect(OVERRIDES.map(({ replaced, version }) => [replaced, version])).toEqual(
    OVERRIDES.map(({ replaced }) => [replaced, manifest.dependencies['oidc-provider']]),
  )
})

test('each replaced member is one that the library has', () => {
  const provider = new Provider('http://127.0.0.1')
  const missing = OVERRIDES.filter(({ apply }) => apply).filter(({ replaced }) => {
    const found = replaced.split('.').reduce<unknown>((at, name) => Reflect.get(Object(at), name), provider)
    return found === undefined
  })
  expect(missing.map(({ replaced }) => replaced)).toEqual([])
})

function open() {
  const state = { isLive: true, name: 'first', reads: 0 }
  const clients = buildInvalidatedCache<AdapterPayload>({
    limit: 10,
    isLive: () => state.isLive,
    changesOf: (id) => [`c:${id}`],
  })
  const read = async (): Promise<AdapterPayload> => {
    state.reads += 1
    return {
      client_id: ID,
      client_name: state.name,
      redirect_uris: ['https://app.example.com/callback'],
      token_endpoint_auth_method: 'none',
    }
  }
  const nothing = async () => undefined
  const adapter: Adapter = {
    upsert: nothing,
    find: (id) => clients.read(id, read),
    findByUid: nothing,
    findByUserCode: nothing,
    consume: nothing,
    destroy: nothing,
    revokeByGrantId: nothing,
  }
  const provider = new Provider('http://127.0.0.1', { adapter: () => adapter })
  applyOverrides(provider, { ...OTHERS, findKeptClient: (id) => clients.find(id), noteSecretUse: nothing })
  const find = () => provider.Client.find(ID)
  return { state, clients, provider, find }
}

test('a client that is cached is built once', async () => {
  const { state, find } = open()
  await find()
  const second = await find()
  expect(await find()).toBe(second)
  expect(state.reads).toBe(1)
})

test('a client that changed is built anew after its change was reported', async () => {
  const { state, clients, find } = open()
  for (let count = 0; count < 3; count += 1) expect((await find())?.clientName).toBe('first')
  state.name = 'second'
  clients.invalidate(`c:${ID}`)
  for (let count = 0; count < 3; count += 1) expect((await find())?.clientName).toBe('second')
})

test('while changes may not be reported, a changed client is read although it was built', async () => {
  const { state, find } = open()
  for (let count = 0; count < 3; count += 1) await find()
  state.isLive = false
  state.name = 'second'
  expect((await find())?.clientName).toBe('second')
})

test('a client that changes while it is built is not handed out later', async () => {
  const { state, clients, find } = open()
  await find()
  const building = find()
  state.name = 'second'
  clients.invalidate(`c:${ID}`)
  await building
  expect((await find())?.clientName).toBe('second')
})

test('without an id there is no client, and none is read', async () => {
  const { state, provider } = open()
  expect(await provider.Client.find(undefined as unknown as string)).toBeUndefined()
  expect(state.reads).toBe(0)
})
