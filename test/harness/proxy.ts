import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** What the way to the database does now. */
export type ProxyState =
  /** Passes everything on. */
  | 'open'
  /** Takes connections and bytes and passes nothing on, either way: a machine that hangs. Goes on where it was when opened again. */
  | 'paused'
  /** Resets every connection, also new ones: a server that is down. */
  | 'refusing'

/** A TCP proxy between a service and its database whose faults a test switches. */
export interface DatabaseProxy extends AsyncDisposable {
  /** The given connection string, by way of the proxy. */
  connectionString: string
  set(state: ProxyState): void
  /** Resets the connections there are; new ones pass. */
  drop(): void
  connectionCount(): number
}

/** Starts a proxy to the server of `target`, a connection string. */
export async function startDatabaseProxy(target: string): Promise<DatabaseProxy> {
  const url = new URL(target)
  const pairs = new Set<{ near: Socket; far: Socket }>()
  let state: ProxyState = 'open'
  const server = createServer({ pauseOnConnect: true }, (near) => {
    if (state === 'refusing') return void near.resetAndDestroy()
    const far = connect(Number(url.port), url.hostname)
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
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
    connectionCount: () => pairs.size,
    [Symbol.asyncDispose]: async () => {
      drop()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function setFlow({ near, far }: { near: Socket; far: Socket }, state: ProxyState): void {
  for (const socket of [near, far]) {
    if (state === 'paused') socket.pause()
    else socket.resume()
  }
}
