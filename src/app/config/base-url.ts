import type { FastifyInstance } from 'fastify'
import { isLoopbackHost } from '../../http/request/local-request.ts'
import { SINK_PATH } from '../../webhook/sink/sink.ts'
import type { Config } from './config.ts'

/** The base URL of the service: BASE_URL, or localhost with the actual port; before listening, with that of the settings. */
export function buildBaseUrl(config: Config, findPort: () => number | undefined): () => string {
  let known = config.baseUrl
  return () => {
    if (known !== undefined) return known
    const port = findPort()
    if (port !== undefined) known = `http://localhost:${port}`
    return known ?? `http://localhost:${config.port}`
  }
}

/** The address at which a process reaches its own server: its listening address, loopback for all addresses. */
export function buildOwnOrigin({ host, port }: Config, findPort: () => number | undefined): () => string {
  const isEvery = host === '0.0.0.0' || host === '::'
  const name = isEvery ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return () => `http://${name}:${findPort() ?? port}`
}

/** The URL of the service's own receiver: in development on loopback, since it answers this machine only. */
export function buildSinkUrl(
  config: Config,
  { baseUrl, findPort }: { baseUrl: () => string; findPort: () => number | undefined },
): () => string {
  const isLocal = config.baseUrl === undefined || isLoopbackHost(URL.parse(config.baseUrl)?.host)
  const origin = config.appEnv === 'development' && !isLocal ? buildOwnOrigin(config, findPort) : baseUrl
  return () => `${origin()}${SINK_PATH}`
}

/** The port that the server listens on; undefined before it listens. */
export function readPort(server: FastifyInstance): number | undefined {
  const address = server.server.address()
  return typeof address === 'object' ? address?.port : undefined
}
