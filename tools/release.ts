import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { readMigrations } from '../src/postgres/migration/migrate.ts'
import { addSite } from './release/add-site.ts'
import { buildService } from './release/build-service.ts'
import { freeze } from './release/frozen-release.ts'
import { describeChecksum, pack, type Tarball } from './release/pack.ts'
import { listPackages } from './release/packages.ts'
import { stagePackage } from './release/stage-package.ts'

/**
 * Makes everything of a release in `dist/release`: a tarball of the service and of each package, the bill of materials and
 * the checksums. Publishes nothing. docs/operations/releasing.md has the steps around it.
 *
 *   npm run release -- [--freeze] [--out folder] [--repository git+https://...]
 *
 * `--freeze` keeps the tarball of the service in `releases/`, for the test of the next upgrade.
 */

const { values } = parseArgs({
  options: {
    freeze: { type: 'boolean', default: false },
    out: { type: 'string' },
    repository: { type: 'string' },
  },
})
const ROOT = join(import.meta.dirname, '..')
const out = values.out ?? join(ROOT, 'dist', 'release')
const repository = values.repository === undefined ? undefined : { type: 'git' as const, url: values.repository }

await rm(out, { recursive: true, force: true })
await mkdir(out, { recursive: true })
const service = join(out, 'service')
const { version } = await buildService(service, repository)
await addSite(service)
const packages = (await listPackages()).map(({ folder }) => ({ folder, to: join(out, basename(folder)) }))
for (const { folder, to } of packages) await stagePackage(folder, to, repository)
const staged = [service, ...packages.map(({ to }) => to)]
const tarballs = await pack(staged, out)
for (const folder of staged) await rm(folder, { recursive: true })
const materials = join(out, 'sbom.cdx.json')
await writeFile(materials, await describeMaterials())
const paths = [...tarballs.map(({ path }) => path), materials]
const checksums = await Promise.all(paths.map(describeChecksum))
await writeFile(join(out, 'SHA512SUMS'), `${checksums.join('\n')}\n`)
if (values.freeze && tarballs[0]) {
  const changelog = await readFile(join(ROOT, 'CHANGELOG.md'), 'utf8')
  await freeze(tarballs[0], { version, changelog, migrations: await readMigrations() })
}
for (const tarball of tarballs) process.stdout.write(`${describe(tarball)}\n`)
if (repository === undefined)
  process.stdout.write('No --repository: npm publish --provenance needs the one that has the source.\n')

function describe({ path, size, unpackedSize, files }: Tarball): string {
  const name = path.slice(out.length + 1).padEnd(32)
  return `${name} ${(size / 1e6).toFixed(2)} MB, ${(unpackedSize / 1e6).toFixed(1)} MB unpacked, ${files.length} files`
}

async function describeMaterials(): Promise<string> {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev']
  const { stdout } = await promisify(execFile)('npm', args, { cwd: ROOT, maxBuffer: 64 * 1_048_576 })
  return stdout
}
