import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type DatabaseProxy, startDatabaseProxy } from '../fakes/proxy.ts'
import { findDataRoot } from '../process/data-root.ts'
import { findFreePort } from '../process/port.ts'
import { startProcess, type TestProcess } from '../process/process.ts'
import { waitFor } from '../run/wait.ts'

/** One nats-server of a test. */
export interface NatsNode {
  name: string
  /** `nats://127.0.0.1:<port>`. */
  url: string
  /** `http://127.0.0.1:<port>`, where it answers `/varz`. */
  monitorUrl: string
  /** The folder of its files. */
  folder: string
  /** Of its process; undefined while it is killed. */
  pid(): number | undefined
  /** Starts it again, on the same ports and files. */
  start(): Promise<void>
  /** Ends it with SIGKILL. */
  kill(): Promise<void>
  /** Stops and resumes its process: the others see a node that answers nothing. */
  freeze(): void
  thaw(): void
}

/** One nats-server, or three that form a cluster. Ended, with their files, at the end of the scope. */
export interface NatsServers extends AsyncDisposable {
  nodes: readonly NatsNode[]
  /** The URLs of all nodes, comma-separated, as the settings take them. */
  url: string
  monitorUrls: string
  /** Resolves when every node answers, and knows a leader of JetStream. */
  waitUntilReady(): Promise<void>
  /** Loses everything between a node and the others, both ways, without ending a connection; needs `isSplittable`. */
  split(name: string): void
  /** Lets them reach each other again. */
  heal(): void
}

/** Options of servers. */
export interface NatsServersOptions {
  /** Path of nats-server, of `findNatsServer`. */
  program: string
  size?: 1 | 3
  /** `sync_interval`; JetStream itself syncs every two minutes. */
  syncInterval?: string
  /** Whether the nodes reach each other through proxies that `split` closes. */
  isSplittable?: boolean
  /** Further lines of the configuration: users, accounts, TLS. */
  lines?: string
}

/** Starts servers with JetStream on loopback. */
export async function startNatsServers(options: NatsServersOptions): Promise<NatsServers> {
  const { program, size = 1 } = options
  const folder = await mkdtemp(join(await findDataRoot(), 'signalbox-nats-'))
  const names = Array.from({ length: size }, (_, index) => `n${index + 1}`)
  const ports: Ports[] = []
  for (const name of names)
    ports.push({ name, client: await findFreePort(), monitor: await findFreePort(), route: await findFreePort() })
  const paths = await openPaths(ports, options.isSplittable === true)
  const routesOf = ({ name }: Ports) => paths.filter(({ from }) => from === name).map(({ url }) => url)
  const nodes = ports.map((own) => buildNode(program, folder, own, describeNode(folder, own, routesOf(own), options)))
  const servers: NatsServers = {
    nodes,
    url: nodes.map((node) => node.url).join(','),
    monitorUrls: nodes.map((node) => node.monitorUrl).join(','),
    waitUntilReady: async () => {
      await waitFor('JetStream of every node', async () => (await Promise.all(nodes.map(isReady))).every(Boolean))
    },
    split: (name) => {
      for (const { from, to, proxy } of paths) if (from === name || to === name) proxy?.set('swallowing')
    },
    heal: () => {
      for (const { proxy } of paths) {
        proxy?.set('open')
        proxy?.drop()
      }
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(nodes.map((node) => node.kill()))
      for (const { proxy } of paths) await proxy?.[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
  await Promise.all(nodes.map((node) => node.start()))
  await servers.waitUntilReady()
  return servers
}

interface Ports {
  name: string
  client: number
  monitor: number
  route: number
}

/** The way of one node to the routes of another, or of all to all where nothing is between them. */
interface Path {
  from: string
  to: string
  url: string
  proxy?: DatabaseProxy
}

/** The routes of each node: its own one and direct ones, or one proxy for each pair and direction. */
async function openPaths(ports: readonly Ports[], isSplittable: boolean): Promise<Path[]> {
  const pairs = ports.flatMap((from) => ports.map((to) => ({ from: from.name, to: to.name, port: to.route })))
  const paths: Path[] = []
  for (const { from, to, port } of pairs) {
    const url = `nats://127.0.0.1:${port}`
    if (!isSplittable) paths.push({ from, to, url })
    else if (from !== to) {
      const proxy = await startDatabaseProxy(url)
      paths.push({ from, to, url: proxy.connectionString, proxy })
    }
  }
  return paths
}

function describeNode(folder: string, own: Ports, urls: readonly string[], options: NatsServersOptions): string {
  const { syncInterval = 'always', lines = '' } = options
  // A node that learns the address of another one would pass the proxies by.
  const hidden = options.isSplittable ? 'no_advertise: true, advertise: "127.0.0.1:1", ' : ''
  const routes = urls.join(', ')
  return [
    `server_name: ${own.name}`,
    `listen: 127.0.0.1:${own.client}`,
    `http: 127.0.0.1:${own.monitor}`,
    `jetstream { store_dir: "${join(folder, own.name)}", max_file: 4G, sync_interval: ${syncInterval} }`,
    ...(options.size === 3
      ? [`cluster { name: c1, ${hidden}listen: 127.0.0.1:${own.route}, routes: [${routes}] }`]
      : []),
    lines,
  ].join('\n')
}

function buildNode(program: string, folder: string, own: Ports, configuration: string): NatsNode {
  const path = join(folder, `${own.name}.conf`)
  let process: TestProcess | undefined
  return {
    name: own.name,
    url: `nats://127.0.0.1:${own.client}`,
    monitorUrl: `http://127.0.0.1:${own.monitor}`,
    folder: join(folder, own.name),
    start: async () => {
      await writeFile(path, configuration)
      process = startProcess({ command: program, args: ['-c', path] })
      await process.waitForOutput(/Server is ready/)
    },
    kill: async () => {
      await process?.kill()
      process = undefined
    },
    pid: () => process?.pid,
    freeze: () => process?.signal('SIGSTOP'),
    thaw: () => process?.signal('SIGCONT'),
  }
}

/** A node is ready when it answers `/healthz`: it has the current state of JetStream. */
async function isReady(node: NatsNode): Promise<boolean> {
  try {
    return (await fetch(`${node.monitorUrl}/healthz`)).ok
  } catch {
    return false
  }
}
