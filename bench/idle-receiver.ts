import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerParent } from './child-process.ts'
import type { ReceiverKind } from './idle-connections.ts'

/** Receivers in a process of their own: each closes a connection that was idle for its limit, and answers 200. */

/** Opens `count` receivers of each kind. Answers with their origins, kind by kind. */
async function open({ kinds, count }: { kinds: readonly ReceiverKind[]; count: number }): Promise<string[][]> {
  return Promise.all(kinds.map((kind) => Promise.all(Array.from({ length: count }, () => openOne(kind)))))
}

async function openOne({ limitMs, isAnnounced }: ReceiverKind): Promise<string> {
  const server: Server = createServer((request, response) => {
    request.resume()
    // With a `Connection` header of its own an answer of Node says nothing of the limit.
    if (!isAnnounced) response.setHeader('connection', 'keep-alive')
    request.on('end', () => response.end('ok'))
  })
  server.keepAliveTimeout = limitMs
  // The limit is kept to the millisecond, as other servers do.
  server.keepAliveTimeoutBuffer = 0
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

answerParent(open)
