import { spawnSync } from 'node:child_process'
import { toPrintableLine } from '../../src/command/print/printable.ts'
import { findSection } from './changelog.ts'

/** A known vulnerability in a package of a release. */
export interface Advisory {
  /** `GHSA-...`, or the address of an advisory without such an id. */
  id: string
  package: string
  severity: string
  title: string
}

/** Result of an audit. `not checked`: the registry did not answer, so nothing is known. */
export type AuditResult =
  | { kind: 'not checked'; reason: string }
  | { kind: 'checked'; open: Advisory[]; named: Advisory[] }

/** Severities that hold a release up (docs/contract/versioning.md#dependencies). */
const HOLDING = ['high', 'critical']

interface Report {
  auditReportVersion?: number
  message?: string
  error?: { summary?: string; code?: string }
  vulnerabilities?: Record<
    string,
    { via: (string | { url?: string; name: string; severity: string; title: string })[] }
  >
}

/** Asks npm about the packages of `root` that a release installs; `env` has the settings of npm. */
export function runAudit(root: string, env: NodeJS.ProcessEnv): string {
  const args = ['audit', '--omit=dev', '--json', '--fetch-retries=0']
  const { stdout, error } = spawnSync('npm', args, { cwd: root, env, encoding: 'utf8', maxBuffer: 64 * 1_048_576 })
  return error ? JSON.stringify({ message: error.message }) : stdout
}

/**
 * Judges what `npm audit --json` printed. An advisory that holds a release up is open, unless the section of the next version
 * in `changelog` names its id with the reason why it does not apply. Pure.
 */
export function judgeAudit(printed: string, changelog: string): AuditResult {
  const report = parseReport(printed)
  if (report.auditReportVersion === undefined || report.vulnerabilities === undefined)
    return { kind: 'not checked', reason: report.message || report.error?.summary || 'npm printed no report' }
  const found = Object.values(report.vulnerabilities)
    .flatMap(({ via }) => via)
    .filter((cause) => typeof cause !== 'string')
    .filter(({ severity }) => HOLDING.includes(severity))
    .map(({ url = '', name, severity, title }) => ({
      ...{ id: /GHSA-[\w-]+/.exec(url)?.[0] ?? url, package: name, severity, title },
    }))
  const advisories = [...new Map(found.map((advisory) => [`${advisory.id} ${advisory.package}`, advisory])).values()]
  const section = findSection(changelog, 'Unreleased') ?? ''
  const isNamed = ({ id }: Advisory) => id !== '' && section.includes(id)
  return {
    kind: 'checked',
    open: advisories.filter((advisory) => !isNamed(advisory)),
    named: advisories.filter(isNamed),
  }
}

function parseReport(printed: string): Report {
  try {
    return (JSON.parse(printed) as Report | null) ?? {}
  } catch {
    return {}
  }
}

/** Lines for a person, and the exit code: 0 without an open advisory, 1 with one, 2 when nothing was checked. Pure. */
export function describeAudit(result: AuditResult): { lines: string[]; code: 0 | 1 | 2 } {
  if (result.kind === 'not checked')
    return {
      lines: [
        toPrintableLine(
          `audit: not checked, because the registry gave no report (${result.reason}). Run it before a release.`,
        ),
      ],
      code: 2,
    }
  const describe = ({ id, package: name, severity, title }: Advisory) =>
    toPrintableLine(`${severity}  ${name}  ${id}  ${title}`)
  const lines = [
    ...result.open.map(describe),
    ...result.named.map((advisory) => `${describe(advisory)} (named in CHANGELOG.md)`),
  ]
  if (result.open.length === 0)
    return { lines: [...lines, 'audit: no open advisory of severity high or critical.'], code: 0 }
  const remedy = 'update the package, or name the advisory in CHANGELOG.md with the reason why it does not apply'
  return { lines: [...lines, `audit: ${result.open.length} open: ${remedy}.`], code: 1 }
}
