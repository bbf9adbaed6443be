import { NODE_RANGE } from '../../base/version.ts'
import { type Finding, warn } from './finding.ts'

/**
 * Whether a version of Node is in the range of `config.runtime` in package.json, which excludes releases with known
 * vulnerabilities. Pure. `range`: `^24.18.1 || >=26.12.1`; `^` keeps the major version.
 */
export function isSupportedNode(version: string, range: string = NODE_RANGE): boolean {
  const own = parseVersion(version)
  return range.split('||').some((part) => {
    const least = parseVersion(part)
    return compareVersions(own, least) >= 0 && (!part.trim().startsWith('^') || own[0] === least[0])
  })
}

/** Descriptors of a process. */
export interface OpenFileFacts {
  /** Undefined for none. */
  limit: number | undefined
  /** Those of all connections that the settings allow. */
  needed: number
}

/** Classifies the Node that runs the service, `version` as in `process.versions.node`, and its limit of open files. Pure. */
export function classifyRuntime(version: string, openFiles: OpenFileFacts): Finding[] {
  return [...classifyNode(version), ...classifyOpenFiles(openFiles)]
}

function classifyOpenFiles({ limit, needed }: OpenFileFacts): Finding[] {
  if (limit === undefined || limit >= needed) return []
  return [
    warn(
      'open_files_low',
      `A process may open ${limit} files; the settings allow connections that need ${needed}.`,
      'Raise the limit (LimitNOFILE of the unit, ulimits of the container), or lower HTTP_MAX_CONNECTIONS.',
    ),
  ]
}

function classifyNode(version: string): Finding[] {
  if (isSupportedNode(version)) return []
  return [
    warn(
      'node_outdated',
      `This is Node ${version}; releases outside ${NODE_RANGE} have known vulnerabilities.`,
      `Install a Node of ${NODE_RANGE} and put it on the path: the start takes the newest of its release line.`,
    ),
  ]
}

type Version = readonly [number, number, number]

function parseVersion(text: string): Version {
  const [, major, minor, patch] = /(\d+)\.(\d+)\.(\d+)/.exec(text) ?? []
  if (major === undefined) throw new TypeError(`${text} is not a version of Node`)
  return [Number(major), Number(minor), Number(patch)]
}

function compareVersions(a: Version, b: Version): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2]
}
