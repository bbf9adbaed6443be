import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { SITE_PATH } from '../src/http/reference/docs-page.ts'
import { SITE_FOLDER } from '../src/operations/site/site-build.ts'
import { sealSite } from './content/seal.ts'
import { writeContent } from './content/write-content.ts'

/** Builds the documentation site: `npm run site`. */

const ROOT = join(import.meta.dirname, '..')

async function build(base: string, out: string): Promise<void> {
  const pages = await writeContent(base)
  process.stdout.write(`${pages} pages\n`)
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

const program = new Command('site')
  .description('Builds the documentation site into site/dist, or for the service into site/service.')
  .option('--base <path>', 'path before every page, such as /v0.1, so that versions stand beside each other', '')
  .option('--service', `for the service, which serves it at ${SITE_PATH}`)
  .option('--out <folder>', 'another folder for the build, which is emptied')
  .action(async ({ base, service, out }: { base: string; service?: boolean; out?: string }) => {
    if (!service) return build(base.replace(/\/$/, ''), out ?? join(import.meta.dirname, 'dist'))
    const made = await mkdtemp(join(tmpdir(), 'signalbox-site-'))
    try {
      await build(SITE_PATH, made)
      await sealSite(made, out ?? SITE_FOLDER)
    } finally {
      await rm(made, { recursive: true, force: true })
    }
  })
await program.parseAsync()
