import { spawnSync } from 'node:child_process'
import packageJson from '../package.json' with { type: 'json' }

/**
 * Compares the pinned Node with the releases that the npm package `node` has: a step of CI, because a release may mend
 * vulnerabilities. Exits 1 when a later release of the pinned line is there. Without a network it passes and says so.
 */

/** The latest release of the line of `pinned` among `versions`, or undefined when the pin is the latest. Pure. */
export function findLaterRelease(pinned: string, versions: readonly string[]): string | undefined {
  const read = (version: string) => version.split('.').map(Number) as [number, number, number]
  const [major, minor, patch] = read(pinned)
  const later = versions
    .filter((version) => /^\d+\.\d+\.\d+$/.test(version))
    .map(read)
    .filter((item) => item[0] === major && (item[1] - minor || item[2] - patch) > 0)
    .sort((a, b) => a[1] - b[1] || a[2] - b[2])
  return later.at(-1)?.join('.')
}

function readVersions(): string[] | undefined {
  const { status, stdout } = spawnSync('npm', ['view', 'node', 'versions', '--json'], {
    encoding: 'utf8',
    timeout: 60_000,
  })
  return status === 0 ? (JSON.parse(stdout) as string[]) : undefined
}

if (process.argv[1] === import.meta.filename) {
  const pinned = packageJson.optionalDependencies.node
  const versions = readVersions()
  const later = versions && findLaterRelease(pinned, versions)
  if (versions === undefined) console.log(`Node ${pinned} is pinned; npm did not answer, so it was not compared.`)
  else if (later === undefined) console.log(`Node ${pinned} is pinned, the latest of its line that npm has.`)
  else {
    console.error(
      `Node ${pinned} is pinned and ${later} is there: npm install --save-optional --save-exact node@${later}`,
    )
    process.exitCode = 1
  }
}
