import { spawnSync } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { chmod, copyFile, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

/** The image that `buildImage` makes. */
export const IMAGE = 'localhost/signalbox:check'
const BASE_IMAGE = 'localhost/signalbox-base:check'

function buildah(args: readonly string[]): string {
  const env = { ...process.env, BUILDAH_ISOLATION: 'chroot' }
  const { status, stdout, stderr } = spawnSync('buildah', args, { cwd: ROOT, env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`buildah ${args[0]} ended with ${status}:\n${stdout ?? ''}${stderr ?? 'not found'}`)
  return (stdout ?? '').trim()
}

/**
 * Makes a base image of the archive of a Debian root, with the pinned Node of this checkout and the npm of this machine,
 * in the place of `node:<release>-slim`. Returns its name.
 */
export async function buildBase(archive: string): Promise<string> {
  const container = buildah(['from', 'scratch'])
  try {
    const root = buildah(['mount', container])
    const { status, stderr } = spawnSync('tar', ['-C', root, '-xf', archive, '--exclude=./dev/*'], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`tar ended with ${status}: ${stderr}`)
    const local = join(root, 'usr', 'local')
    await copyFile(process.execPath, join(local, 'bin', 'node'))
    await chmod(join(local, 'bin', 'node'), 0o755)
    await mkdir(join(local, 'lib', 'node_modules'), { recursive: true })
    await cp(findNpm(), join(local, 'lib', 'node_modules', 'npm'), { recursive: true, verbatimSymlinks: true })
    await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin', 'npm'))
    buildah(['umount', container])
    buildah(['config', '--env', 'PATH=/usr/local/bin:/usr/bin:/bin', container])
    buildah(['commit', '--quiet', container, BASE_IMAGE])
    return BASE_IMAGE
  } finally {
    buildah(['rm', container])
  }
}

/** The folder of the npm on the path. */
function findNpm(): string {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    try {
      return dirname(dirname(realpathSync(join(directory, 'npm'))))
    } catch {
      // Not in this folder.
    }
  }
  throw new Error('npm is not on the path')
}

/** Builds the Dockerfile, on `base` or on the image that it names. npm is set as on this machine, by a secret. */
export async function buildImage(base: string | undefined): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'signalbox npmrc '))
  try {
    const certificates = process.env.NODE_EXTRA_CA_CERTS
    const own = await readFile(join(homedir(), '.npmrc'), 'utf8').catch(() => '')
    const npmrc = join(directory, 'npmrc')
    await writeFile(npmrc, certificates ? `${own}\ncafile=${certificates}\n` : own, { mode: 0o600 })
    buildah([
      'build',
      // The format of OCI has no health check.
      '--format=docker',
      '--network=host',
      '--file=deploy/docker/Dockerfile',
      '--ignorefile=deploy/docker/Dockerfile.dockerignore',
      `--secret=id=npmrc,src=${npmrc}`,
      `--tag=${IMAGE}`,
      ...(base === undefined ? [] : [`--build-arg=NODE_IMAGE=${base}`]),
      ...(certificates ? [`--volume=${dirname(certificates)}:${dirname(certificates)}:ro`] : []),
      '.',
    ])
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
