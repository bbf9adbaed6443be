import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { SITE_PATH } from '../src/http/reference/docs-page.ts'
import { SITE_FOLDER } from '../src/operations/site/site-build.ts'
import { buildOnce } from './content/kept-build.ts'
import { sealSite } from './content/seal.ts'
import { writeContent } from './content/write-content.ts'

/** Builds the documentation site: `npm run site`. */

const ROOT = join(import.meta.dirname, '..')

/** Runs Astro on the pages that are written. */
function runAstro(base: string, out: string): void {
  const astro = join(ROOT, 'node_modules', 'astro', 'bin', 'astro.mjs')
  // The variables of a test runner would make a build for development, without the search.
  const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE } = process.env
  const env = { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE, SITE_BASE: base, SITE_OUT: out }
  execFileSync(process.execPath, [astro, 'build'], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'inherit', 'inherit'],
    env,
  })
}

/** Builds the site and stores it as the service keeps it. */
async function buildForService(out: string): Promise<void> {
  const made = await mkdtemp(join(tmpdir(), 'signalbox-site-'))
  try {
    runAstro(SITE_PATH, made)
    await sealSite(made, out)
  } finally {
    await rm(made, { recursive: true, force: true })
  }
}

const program = new Command('site')
  .description('Builds the documentation site into site/dist, or for the service into site/service.')
  .option('--base <path>', 'path before every page, such as /v0.1, so that versions stand beside each other', '')
  .option('--service', `for the service, which serves it at ${SITE_PATH}`)
  .option('--out <folder>', 'another folder for the build, which is emptied')
  .option('--kept <path>', 'with --service: take the build of equal pages from here, else keep the new one here')
  .action(async ({ base, service, out, kept }: { base: string; service?: boolean; out?: string; kept?: string }) => {
    const path = service ? SITE_PATH : base.replace(/\/$/, '')
    process.stdout.write(`${await writeContent(path)} pages\n`)
    if (!service) return runAstro(path, out ?? join(import.meta.dirname, 'dist'))
    const target = out ?? SITE_FOLDER
    if (kept === undefined) return buildForService(target)
    return buildOnce({ root: ROOT, kept, out: target }, () => buildForService(target))
  })
await program.parseAsync()
