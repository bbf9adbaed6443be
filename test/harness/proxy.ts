import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** The state of the connection to the database. */
export type ProxyState =
  /** Forwards everything. */
  | 'open'
  /** Accepts connections and bytes and forwards none, like a hanging machine. Continues when opened again. */
  | 'paused'
  /** Resets every connection, also new ones: a server that is down. */
  | 'refusing'

/** A TCP proxy between a service and its database with switchable faults. */
export interface DatabaseProxy extends AsyncDisposable {
  /** The given connection string, through the proxy. */
  connectionString: string
  set(state: ProxyState): void
  /** Resets the open connections; new ones pass. */
  drop(): void
  /** Connects to the server of another connection string from now on: the same database, restarted on another port. */
  retarget(target: string): void
  connectionCount(): number
}

/** Starts a proxy to the server of `target`, a connection string. */
export async function startDatabaseProxy(target: string): Promise<DatabaseProxy> {
  const url = new URL(target)
  let server = { host: url.hostname, port: Number(url.port) }
  const pairs = new Set<{ near: Socket; far: Socket }>()
  let state: ProxyState = 'open'
  const listener = createServer({ pauseOnConnect: true }, (near) => {
    if (state === 'refusing') return void near.resetAndDestroy()
    const far = connect(server)
    const pair = { near, far }
    pairs.add(pair)
    const end = () => {
      pairs.delete(pair)
      near.destroy()
      far.destroy()
    }
    for (const socket of [near, far]) {
      socket.setNoDelay(true)
      socket.on('error', () => {}).on('close', end)
    }
    near.on('data', (chunk) => far.write(chunk))
    far.on('data', (chunk) => near.write(chunk))
    setFlow(pair, state)
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  url.host = `127.0.0.1:${(listener.address() as AddressInfo).port}`
  const drop = () => {
    for (const { near, far } of pairs) {
      near.resetAndDestroy()
      far.resetAndDestroy()
    }
  }
  return {
    connectionString: url.href,
    set: (next) => {
      state = next
      if (next === 'refusing') drop()
      for (const pair of pairs) setFlow(pair, next)
    },
    drop,
    retarget: (next) => {
      const { hostname, port } = new URL(next)
      server = { host: hostname, port: Number(port) }
    },
    connectionCount: () => pairs.size,
    [Symbol.asyncDispose]: async () => {
      drop()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}

function setFlow({ near, far }: { near: Socket; far: Socket }, state: ProxyState): void {
  for (const socket of [near, far]) {
    if (state === 'paused') socket.pause()
    else socket.resume()
  }
}
