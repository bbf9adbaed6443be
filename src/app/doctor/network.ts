import { execFile } from 'node:child_process'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { connect, createServer, isIP } from 'node:net'
import { promisify } from 'node:util'
import type { PortFacts } from '../../operations/doctor/machine-findings.ts'
import { listHosts } from '../../postgres/connection/host-list.ts'
import type { Config } from '../config/config.ts'

const CONNECT_LIMIT_MS = 3_000

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'failed'
}

/** Whether a TCP connection is accepted within 3 s: undefined, or the code of the failure. Sends nothing. */
export function tryConnect(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    const end = (error: string | undefined) => {
      socket.destroy()
      resolve(error)
    }
    socket.setTimeout(CONNECT_LIMIT_MS, () => end('ETIMEDOUT'))
    socket.once('connect', () => end(undefined))
    socket.once('error', (error) => end(codeOf(error)))
  })
}

/** Whether a port is free, and otherwise its listener. Briefly listens on it. */
export async function findPortFacts(asked: Pick<PortFacts, 'setting' | 'port' | 'host'>): Promise<PortFacts> {
  const { host, port } = asked
  const error = await new Promise<string | undefined>((resolve) => {
    const server = createServer()
    server.once('error', (fault) => resolve(codeOf(fault)))
    server.listen({ host, port }, () => server.close(() => resolve(undefined)))
  })
  const isHeld = error === 'EADDRINUSE'
  const holder = isHeld ? await findHolder(port).catch(() => undefined) : undefined
  return { ...asked, error, holder, isOurs: isHeld && holder === undefined && (await answersAsService(asked)) }
}

/** Answer of a Signalbox on each port whose listener the system does not name, usually one of another user. */
const ANSWERS = {
  PORT: { path: '/livez', pattern: /^\{"status":"ok"\}$/ },
  METRICS_PORT: { path: '/metrics', pattern: /^signalbox_build_info\{/m },
} as const

async function answersAsService({
  setting,
  host,
  port,
}: Pick<PortFacts, 'setting' | 'port' | 'host'>): Promise<boolean> {
  const { path, pattern } = ANSWERS[setting]
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  const url = `http://${local.includes(':') ? `[${local}]` : local}:${port}${path}`
  const answer = await fetch(url, { signal: AbortSignal.timeout(CONNECT_LIMIT_MS), redirect: 'error' })
    .then((response) => response.text())
    .catch(() => '')
  return pattern.test(answer)
}

async function findHolder(port: number): Promise<PortFacts['holder']> {
  const pid = process.platform === 'linux' ? await findListenerInProc(port) : await findListenerByLsof(port)
  if (pid === undefined) return undefined
  const { stdout } = await promisify(execFile)('ps', ['-p', String(pid), '-o', 'command='])
  return { pid, command: stdout.trim().slice(0, 200) }
}

async function findListenerByLsof(port: number): Promise<number | undefined> {
  const { stdout } = await promisify(execFile)('lsof', ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-t'])
  return Number(stdout.split('\n')[0]) || undefined
}

/** The state `LISTEN` in /proc/net/tcp. */
const LISTEN = '0A'

async function findListenerInProc(port: number): Promise<number | undefined> {
  const inodes = new Set<string>()
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const text = await readFile(table, 'utf8').catch(() => '')
    for (const line of text.split('\n').slice(1)) {
      const fields = line.trim().split(/\s+/)
      const isPort = Number.parseInt(fields[1]?.split(':')[1] ?? '', 16) === port
      if (isPort && fields[3] === LISTEN && fields[9]) inodes.add(`socket:[${fields[9]}]`)
    }
  }
  if (inodes.size === 0) return undefined
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    // A process of another user shows its descriptors to root only.
    const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => [])
    for (const descriptor of descriptors) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')
      if (inodes.has(target)) return Number(pid)
    }
  }
  return undefined
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = {
  'postgres:': 5432,
  'postgresql:': 5432,
  'smtp:': 587,
  'smtps:': 465,
  'https:': 443,
  'http:': 80,
}

/** The configured servers. */
export function listServers(config: Config): { setting: string; host: string; port: number }[] {
  const given = {
    DATABASE_URL: config.databaseUrl,
    DATABASE_LISTEN_URL: config.databaseListenUrl,
    DATABASE_READ_URL: config.databaseReadUrl,
    SMTP_URL: config.smtp?.url,
    SUPABASE_URL: config.supabaseUrl,
    ALERT_WEBHOOK_URL: config.alertWebhookUrl,
    OTEL_EXPORTER_OTLP_ENDPOINT: config.otlpEndpoint,
  }
  const ofUrls = Object.entries(given)
    .flatMap(([setting, value]) => (value === undefined ? [] : listHosts(value).map((server) => ({ setting, server }))))
    .flatMap(({ setting, server }) => {
      const url = URL.parse(server)
      // Without a host it is a socket of this machine.
      if (!url?.hostname) return []
      const host = url.hostname.replace(/^\[|\]$/g, '')
      return [{ setting, host, port: Number(url.port) || (DEFAULT_PORTS[url.protocol] ?? 443) }]
    })
  const ofLog = (config.eventLog?.nats.servers ?? []).map((server) => {
    const { hostname, port } = new URL(`nats://${server}`)
    return { setting: 'EVENT_LOG_URL', host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) }
  })
  return [...ofUrls, ...ofLog]
}

/** Whether a host is a name that has to be resolved. */
export function isName(host: string): boolean {
  return isIP(host) === 0 && host !== 'localhost'
}
