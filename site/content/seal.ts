import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'
import type { SiteManifest } from '../../src/operations/site/site-build.ts'

const compress = promisify(brotliCompress)

/** Files that get smaller; the rest is stored as it is. */
const COMPRESSED = new Set(['.html', '.js', '.css', '.svg', '.md', '.txt', '.json', '.xml'])

/**
 * Writes a built site as the service keeps it: each text compressed with Brotli and no second copy, so that it takes a
 * sixth; and a manifest with what the service sends of each file, and the hashes of the scripts inside pages for its
 * content policy. The manifest is written last.
 */
export async function sealSite(built: string, target: string): Promise<void> {
  await rm(target, { recursive: true, force: true })
  const entries = await readdir(built, { recursive: true, withFileTypes: true })
  const names = entries
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(built.length + 1)
        .replaceAll('\\', '/'),
    )
  const scripts = new Set<string>()
  const files: SiteManifest['files'] = {}
  for (const name of names.sort()) {
    const body = await readFile(join(built, name))
    const isCompressed = COMPRESSED.has(extname(name))
    if (name.endsWith('.html')) for (const hash of listScriptHashes(body.toString())) scripts.add(hash)
    const stored = isCompressed
      ? await compress(body, {
          params: { [constants.BROTLI_PARAM_QUALITY]: 7, [constants.BROTLI_PARAM_SIZE_HINT]: body.length },
        })
      : body
    await mkdir(dirname(join(target, name)), { recursive: true })
    await writeFile(join(target, name), stored)
    files[name] = { tag: hash(body, 'base64url').slice(0, 22), isCompressed }
  }
  const manifest: SiteManifest = { scripts: [...scripts].sort(), files }
  await writeFile(join(target, 'manifest.json'), `${JSON.stringify(manifest)}\n`)
}

/** Content policy hashes (CSP Level 3, section 6.7) of the scripts inside a page. Pure. */
export function listScriptHashes(page: string): string[] {
  return [...page.matchAll(/<script(?![^>]*\bsrc=)[^>]*>([\s\S]*?)<\/script>/g)].map(
    ([, text = '']) => `sha256-${hash(text, 'base64')}`,
  )
}

const hash = (content: string | Buffer, encoding: 'base64' | 'base64url') =>
  createHash('sha256').update(content).digest(encoding)
