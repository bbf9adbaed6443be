import { readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliDecompress } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { SITE_PATH } from '../../http/reference/docs-page.ts'
import { holdsTag } from '../../http/request/entity-tag.ts'
import type { SiteBuild } from './site-build.ts'

const decompress = promisify(brotliDecompress)

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.md': 'text/markdown; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.json': 'application/json',
  '.xml': 'application/xml',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.wasm': 'application/wasm',
}

/** Cache lifetimes in seconds: of files whose name changes with their content, and of the others, which have a tag. */
const YEAR = 31_536_000
const MINUTE = 60

/** Serves the documentation site at `/docs/site` where there is a build: names of its manifest alone. */
export function mountSite(
  server: FastifyInstance,
  { build, limit }: { build: SiteBuild; limit: (request: FastifyRequest, reply: FastifyReply) => void },
): void {
  const policy = buildPolicy(build.scripts)
  const serve = async (request: FastifyRequest, reply: FastifyReply) => {
    limit(request, reply)
    const [path = ''] = request.url.split('?', 1)
    const name = path.slice(SITE_PATH.length + 1)
    if (name !== '' && !name.endsWith('/') && build.files.has(`${name}/index.html`))
      return reply.redirect(`${SITE_PATH}/${name}/`, 308)
    if (path === SITE_PATH) return reply.redirect(`${SITE_PATH}/`, 308)
    const asked = name === '' || name.endsWith('/') ? `${name}index.html` : name
    const found = build.files.has(asked) ? asked : '404.html'
    reply.code(found === asked ? 200 : 404).headers({ ...policy, vary: 'accept-encoding' })
    return send(request, reply, { build, name: found })
  }
  for (const url of [SITE_PATH, `${SITE_PATH}/*`]) server.get(url, { schema: { hide: true } }, serve)
}

async function send(
  request: FastifyRequest,
  reply: FastifyReply,
  { build, name }: { build: SiteBuild; name: string },
): Promise<FastifyReply> {
  const { tag, isCompressed } = build.files.get(name)!
  const lifetime = name.startsWith('_astro/') ? `${YEAR}, immutable` : MINUTE
  reply.headers({ etag: `"${tag}"`, 'cache-control': `public, max-age=${lifetime}` })
  if (reply.statusCode === 200 && holdsTag(request.headers['if-none-match'], `"${tag}"`)) return reply.code(304).send()
  const stored = await readFile(join(build.folder, name))
  const takesBrotli = /\bbr\b/.test(String(request.headers['accept-encoding'] ?? ''))
  if (isCompressed && takesBrotli) reply.header('content-encoding', 'br')
  return reply
    .type(TYPES[extname(name)] ?? 'application/octet-stream')
    .send(isCompressed && !takesBrotli ? await decompress(stored) : stored)
}

/** Headers of every file. The search compiles WebAssembly; the code blocks have attributes of style. */
function buildPolicy(scripts: readonly string[]): Record<string, string> {
  const policy = [
    "default-src 'none'",
    `script-src 'self' 'wasm-unsafe-eval' ${scripts.map((hash) => `'${hash}'`).join(' ')}`.trimEnd(),
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]
  return { 'content-security-policy': policy.join('; '), 'x-content-type-options': 'nosniff' }
}
