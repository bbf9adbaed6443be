import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** The state of the connection to the database. */
export type ProxyState =
  /** Forwards everything. */
  | 'open'
  /** Accepts connections and bytes and forwards none, like a hanging machine. Continues when opened again. */
  | 'paused'
  /** Resets every connection, also new ones: a server that is down. */
  | 'refusing'
  /** Accepts connections and acknowledges bytes for ever, and loses them: a path through which nothing comes any more. */
  | 'swallowing'

/** A TCP proxy between a service and its database with switchable faults. */
export interface DatabaseProxy extends AsyncDisposable {
  /** The given connection string, through the proxy. */
  connectionString: string
  set(state: ProxyState): void
  /**
   * From now on loses what comes over the open connections, both ways, and still acknowledges it; new ones pass. It stands for
   * a forgotten entry of a NAT, or a failover behind a balancer.
   */
  swallowOpen(): void
  /** Resets the open connections; new ones pass. */
  drop(): void
  /**
   * Keeps the answers of the next connection that sends a text, from that text on: the server has done what was asked, and
   * the client does not know. Resolves when the server has answered.
   */
  holdAnswer(text: string): Promise<void>
  /** Connects to the server of another connection string from now on: the same database, restarted on another port. */
  retarget(target: string): void
  connectionCount(): number
}

/** A connection of a client and the one to the server. */
interface Pair {
  near: Socket
  far: Socket
  isSwallowed: boolean
  /** Runs when the server answers what is held. */
  onHeld?: () => void
}

/** Starts a proxy to the server of `target`, a connection string. */
export async function startDatabaseProxy(target: string): Promise<DatabaseProxy> {
  const url = new URL(target)
  let server = { host: url.hostname, port: Number(url.port) }
  const pairs = new Set<Pair>()
  let state: ProxyState = 'open'
  let isClosing = false
  let held: { text: string; onHeld: () => void } | undefined
  const listener = createServer({ pauseOnConnect: true }, (near) => {
    if (state === 'refusing') return void near.resetAndDestroy()
    const far = connect(server)
    const pair: Pair = { near, far, isSwallowed: state === 'swallowing' }
    pairs.add(pair)
    const end = () => {
      // The other side of a swallowed pair never hears of it.
      if (pair.isSwallowed && !isClosing) return
      pairs.delete(pair)
      near.destroy()
      far.destroy()
    }
    for (const socket of [near, far]) {
      socket.setNoDelay(true)
      socket.on('error', () => {}).on('close', end)
    }
    near.on('data', (chunk) => {
      if (held && chunk.includes(held.text)) {
        pair.onHeld = held.onHeld
        held = undefined
      }
      if (!pair.isSwallowed) far.write(chunk)
    })
    far.on('data', (chunk) => {
      if (pair.onHeld) pair.onHeld()
      else if (!pair.isSwallowed) near.write(chunk)
    })
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
    swallowOpen: () => {
      for (const pair of pairs) pair.isSwallowed = true
    },
    set: (next) => {
      state = next
      for (const pair of pairs) pair.isSwallowed ||= next === 'swallowing'
      if (next === 'refusing') drop()
      for (const pair of pairs) setFlow(pair, next)
    },
    drop,
    holdAnswer: (text) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = { text, onHeld: resolve }
      return promise
    },
    retarget: (next) => {
      const { hostname, port } = new URL(next)
      server = { host: hostname, port: Number(port) }
    },
    connectionCount: () => pairs.size,
    [Symbol.asyncDispose]: async () => {
      isClosing = true
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
