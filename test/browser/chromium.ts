import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import chromiumBinary, { inflate } from '@sparticuz/chromium'
import { type Browser, chromium } from 'playwright-core'

/** No sandbox, since it needs rights that containers and root lack; nothing that calls home. */
const ARGUMENTS = [
  '--no-sandbox',
  '--headless',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/**
 * Starts a browser for tests: the one that CHROMIUM_PATH names, else on Linux x64 the one that the package
 * `@sparticuz/chromium` carries, with the libraries that bare systems lack.
 */
export async function launchChromium(): Promise<Browser> {
  const given = process.env.CHROMIUM_PATH
  if (given) return chromium.launch({ executablePath: given, args: ARGUMENTS })
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error('Set CHROMIUM_PATH to an installed Chromium or Chrome: none is bundled for this system.')
  const executablePath = await chromiumBinary.executablePath()
  const libraries = await unpackLibraries()
  const paths = [process.env.LD_LIBRARY_PATH, libraries].filter(Boolean).join(':')
  return chromium.launch({ executablePath, args: ARGUMENTS, env: { ...process.env, LD_LIBRARY_PATH: paths } })
}

/** The system's own libraries come first; those of the package only fill gaps. */
async function unpackLibraries(): Promise<string> {
  const packed = join(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))), '../bin/al2023.tar.br')
  await inflate(packed)
  const unpacked = join(tmpdir(), 'al2023', 'lib')
  if (!existsSync(unpacked)) throw new Error('the libraries of @sparticuz/chromium could not be unpacked')
  return unpacked
}
