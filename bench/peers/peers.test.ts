import { expect, test } from 'vitest'
import { measurePeer } from './peers.ts'

test.each(['http://192.0.2.1:80', 'https://127.0.0.1:80', 'http://127.0.0.1:80@example.test', 'http://127.0.0.1'])(
  'a load is refused before anything starts for %s',
  async (origin) => {
    const server = { origin, token: '', pids: [] }
    await expect(measurePeer({ product: 'svix', server, seconds: 1 })).rejects.toThrow('loopback only')
  },
)

test('another product needs a running server', async () => {
  await expect(measurePeer({ product: 'svix', seconds: 1 })).rejects.toThrow('needs --origin')
})
