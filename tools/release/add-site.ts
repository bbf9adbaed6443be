import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

const ROOT = join(import.meta.dirname, '..', '..')

/** Sources of the documentation site, beside those of the service. */
export const SITE_FILES = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  ...['docs', 'examples', 'sdk', 'site'],
] as const

/** Builds the documentation site into the service in a folder, which serves it at `/docs/site`. */
export async function addSite(service: string): Promise<void> {
  const args = [join(ROOT, 'site', 'build.ts'), '--service', '--out', join(service, 'site', 'service')]
  await promisify(execFile)(process.execPath, args, { cwd: ROOT, maxBuffer: 64 * 1_048_576 })
}
