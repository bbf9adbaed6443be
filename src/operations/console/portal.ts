import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { chooseTexts } from '../../base/language/texts.ts'
import type { Random } from '../../base/random.ts'
import { VERSION } from '../../base/version.ts'
import type { Brand } from '../../identity/pages/brand/brand.ts'
import { hrefOf } from '../../identity/pages/brand/page-file.ts'
import type { ConsoleReader } from './console-build.ts'
import { renderUnbuiltPage } from './console-page.ts'
import { buildPortalHeaders, type PortalSettings, renderPortalPage } from './portal-page.ts'

export interface PortalDeps {
  brand: Brand
  /** Whether this process builds the page in the background after its start. */
  isBuilding: boolean
  random: Random
  /** The build of the console, whose second page it is. */
  readBuild: ConsoleReader
  /** `PORTAL_FRAME_ANCESTORS`. */
  ancestors: readonly string[]
  /** Whether callbacks may go to the private targets that a setting of the service names. */
  allowsPrivateTargets: boolean
  /** Counts a request; throws `rate_limited`. */
  limit: (request: FastifyRequest, reply: FastifyReply) => void
}

const NONCE_BYTES = 16

/**
 * Serves the tenants' portal at `/portal` (docs/contract/portal.md): one page, the same for every visitor. It reads no
 * cookie and sets none: its script opens a session by the link in the fragment, and keeps the token in memory.
 */
export function mountPortal(server: FastifyInstance, deps: PortalDeps): void {
  const { brand, ancestors, readBuild } = deps
  server.get('/portal', { schema: { hide: true } }, async (request, reply) => {
    deps.limit(request, reply)
    const { language, theme } = request.query as Record<string, unknown>
    const { 'accept-language': acceptLanguage } = request.headers
    const texts = chooseTexts({ uiLocales: language, ...(acceptLanguage !== undefined && { acceptLanguage }) })
    const nonce = deps.random.bytes(NONCE_BYTES).toString('base64url')
    const entry = readBuild()?.entries.get('portal')
    const settings = {
      formToken: '',
      nonce,
      service: brand.name,
      environment: '',
      version: VERSION,
      allowsPrivateTargets: deps.allowsPrivateTargets,
      language: texts.lang,
    }
    const portal = {
      logo: brand.logo && hrefOf(brand.logo),
      colors: brand.colors,
      theme: readTheme(theme),
      ancestors,
    }
    const unbuilt = { service: brand.name, isBuilding: deps.isBuilding }
    const page = entry ? renderPortalPage(entry, settings, portal) : renderUnbuiltPage(texts, unbuilt)
    // Every answer has one, which would refuse the frame to browsers that do not know `frame-ancestors`.
    if (ancestors.length > 0) reply.removeHeader('x-frame-options')
    return reply
      .code(entry ? 200 : 503)
      .headers({ ...buildPortalHeaders(nonce, ancestors), vary: 'accept-language' })
      .type('text/html; charset=utf-8')
      .send(page)
  })
}

function readTheme(value: unknown): PortalSettings['theme'] {
  return value === 'light' || value === 'dark' ? value : 'auto'
}
