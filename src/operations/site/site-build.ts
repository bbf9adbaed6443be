import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Directory of the build for the service: `npm run site -- --service`. */
export const SITE_FOLDER = fileURLToPath(new URL('../../../site/service', import.meta.url))

/** The `manifest.json` of a build. */
export interface SiteManifest {
  /** Content policy hashes of the scripts inside pages: `sha256-...`. */
  scripts: string[]
  /** Files by their path below the site. */
  files: Record<string, SiteFile>
}

/** A file of the site. */
export interface SiteFile {
  /** Entity tag of its content, without quotes. */
  tag: string
  /** Whether it is stored compressed with Brotli. */
  isCompressed: boolean
}

/** A build: only files of the manifest are ever opened. */
export interface SiteBuild {
  folder: string
  scripts: readonly string[]
  files: ReadonlyMap<string, SiteFile>
}

/** Reads the manifest of the build in a folder; undefined where there is none. */
export function readSiteBuild(folder: string): SiteBuild | undefined {
  let text: string
  try {
    text = readFileSync(join(folder, 'manifest.json'), 'utf8')
  } catch {
    return undefined
  }
  const { scripts, files } = JSON.parse(text) as SiteManifest
  return { folder, scripts, files: new Map(Object.entries(files)) }
}
