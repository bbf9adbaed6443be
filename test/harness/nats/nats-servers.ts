import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
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
}

/** Options of servers. */
export interface NatsServersOptions {
  /** Path of nats-server, of `findNatsServer`. */
  program: string
  size?: 1 | 3
  /** `sync_interval`; JetStream itself syncs every two minutes. */
  syncInterval?: string
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
  const nodes = ports.map((own) => buildNode(program, folder, own, describeNode(folder, own, ports, options)))
  const servers: NatsServers = {
    nodes,
    url: nodes.map((node) => node.url).join(','),
    monitorUrls: nodes.map((node) => node.monitorUrl).join(','),
    waitUntilReady: async () => {
      await waitFor('JetStream of every node', async () => (await Promise.all(nodes.map(isReady))).every(Boolean))
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(nodes.map((node) => node.kill()))
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

function describeNode(folder: string, own: Ports, all: readonly Ports[], options: NatsServersOptions): string {
  const { syncInterval = 'always', lines = '' } = options
  const routes = all.map(({ route }) => `nats://127.0.0.1:${route}`).join(', ')
  return [
    `server_name: ${own.name}`,
    `listen: 127.0.0.1:${own.client}`,
    `http: 127.0.0.1:${own.monitor}`,
    `jetstream { store_dir: "${join(folder, own.name)}", max_file: 4G, sync_interval: ${syncInterval} }`,
    ...(all.length > 1 ? [`cluster { name: c1, listen: 127.0.0.1:${own.route}, routes: [${routes}] }`] : []),
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
    start: async () => {
      await writeFile(path, configuration)
      process = startProcess({ command: program, args: ['-c', path] })
      await process.waitForOutput(/Server is ready/)
    },
    kill: async () => {
      await process?.kill()
      process = undefined
    },
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
