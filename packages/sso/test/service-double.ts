import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request that the service received. */
export interface ReceivedCall {
  path: string
  method: string
  headers: IncomingMessage['headers']
  body: unknown
}

/** A server that answers as the test says, in the place of the service. */
export interface ServiceDouble extends AsyncDisposable {
  url: string
  calls: ReceivedCall[]
  /** The answer to every call; `hang` never answers, `reset` closes the connection. */
  answer: { status: number; body: string; headers?: Record<string, string> } | 'hang' | 'reset'
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A JWT with these claims. Its signature is no signature: a target app does not check one. */
export function buildJwt(claims: object): string {
  return `${encode({ alg: 'HS256' })}.${encode(claims)}.c2lnbmF0dXJl`
}

/** Starts the server on a free loopback port. */
export async function startServiceDouble(): Promise<ServiceDouble> {
  const calls: ReceivedCall[] = []
  const server = createServer(async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString()
    const { url: path = '', method = '', headers } = request
    calls.push({ path, method, headers, body: text === '' ? undefined : JSON.parse(text) })
    const { answer } = double
    if (answer === 'hang') return
    if (answer === 'reset') return void response.destroy()
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers }).end(answer.body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const double: ServiceDouble = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    answer: { status: 200, body: '{}' },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return double
}
