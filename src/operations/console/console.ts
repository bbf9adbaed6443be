import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { VERSION } from '../../base/version.ts'
import { buildPathProblem } from '../../http/route/known-path.ts'
import type { Brand } from '../../identity/pages/brand/brand.ts'
import { type BrowserDeps, findVisitor } from '../../identity/pages/browser/browser-session.ts'
import { askToSignIn } from '../../identity/pages/frame/page-url.ts'
import type { ConsoleFile, ConsoleReader } from './console-build.ts'
import { ASSETS_PATH, buildConsoleHeaders, renderConsolePage, renderUnbuiltPage } from './console-page.ts'

export interface ConsoleDeps extends BrowserDeps {
  brand: Brand
  /** `APP_ENV`, which the console shows. */
  environment: string
  /** Whether WEBHOOK_ALLOWED_PRIVATE_TARGETS names any. */
  allowsPrivateTargets: boolean
  readBuild: ConsoleReader
  /** Origin of the realtime server, such as `wss://ws-eu.pusher.com`; undefined in log-only mode. */
  findSocket: () => string | undefined
  /** Counts a request; throws `rate_limited`. */
  limit: (request: FastifyRequest, reply: FastifyReply) => void
}

/** Cache lifetime of a file, in seconds; its name changes with its content. */
const YEAR_SECONDS = 31_536_000

const NONCE_BYTES = 16

/**
 * Serves the operator console at `/console` (docs/contract/webhooks.md#operator-console): one page for every path below it,
 * for a user who is signed in, and its files. What a user may see there is decided by the API.
 */
export function mountConsole(server: FastifyInstance, deps: ConsoleDeps): void {
  const { readBuild } = deps
  const serve = async (request: FastifyRequest, reply: FastifyReply) => {
    deps.limit(request, reply)
    const path = request.url.split('?', 1)[0] ?? ''
    if (path.startsWith(ASSETS_PATH))
      return sendFile(request, reply, readBuild()?.files.get(path.slice(ASSETS_PATH.length)))
    const visitor = await findVisitor(deps, request.headers)
    if (!visitor.user) return reply.redirect(askToSignIn(visitor, request.url).location, 303)
    const nonce = deps.random.bytes(NONCE_BYTES).toString('base64url')
    const entry = readBuild()?.entries.get('console')
    const settings = {
      formToken: deps.browserKeys.buildFormToken(visitor.browserId),
      nonce,
      service: deps.brand.name,
      environment: deps.environment,
      version: VERSION,
      allowsPrivateTargets: deps.allowsPrivateTargets,
      language: visitor.texts.lang,
    }
    const unbuilt = { service: deps.brand.name, isBuilding: deps.environment === 'development' }
    const page = entry ? renderConsolePage(entry, settings) : renderUnbuiltPage(visitor.texts, unbuilt)
    return reply
      .code(entry ? 200 : 503)
      .headers({ ...buildConsoleHeaders(nonce, deps.findSocket()), vary: 'accept-language' })
      .type('text/html; charset=utf-8')
      .send(page)
  }
  for (const url of ['/console', '/console/*']) server.get(url, { schema: { hide: true } }, serve)
}

function sendFile(request: FastifyRequest, reply: FastifyReply, file: ConsoleFile | undefined) {
  if (!file) throw buildPathProblem()
  const isCompressed = file.compressed !== undefined && /\bbr\b/.test(String(request.headers['accept-encoding'] ?? ''))
  reply.headers({
    'cache-control': `public, max-age=${YEAR_SECONDS}, immutable`,
    'cross-origin-resource-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
    vary: 'accept-encoding',
    ...(isCompressed && { 'content-encoding': 'br' }),
  })
  return reply.type(file.type).send(isCompressed ? file.compressed : file.body)
}
