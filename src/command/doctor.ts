import { lookup } from 'node:dns/promises'
import type { Command } from 'commander'
import { systemClock } from '../base/clock.ts'
import { systemRandom } from '../base/random.ts'
import { VERSION } from '../base/version.ts'
import { type AreaReport, FINDING_AREAS, type Finding } from '../operations/doctor/finding.ts'
import { print, printJson } from './print/print.ts'

/** Adds `signalbox doctor`. */
export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description(
      'examine settings, database, schema, keys, clock, name service, disk, ports and egress; exit 1 on a failure',
    )
    .option('--json', 'print one JSON object', false)
    .action(async ({ json }: { json: boolean }) => {
      const { examine } = await import('../app/doctor/doctor.ts')
      const { findPages } = await import('../app/doctor/pages.ts')
      const areas = await examine({
        directory: process.cwd(),
        clock: systemClock,
        random: systemRandom,
        lookUp: (host) => lookup(host),
      })
      const pages = findPages({ directory: process.cwd() })
      const isOk = areas.every(({ status }) => status !== 'failure')
      if (json) printJson({ ok: isOk, version: VERSION, areas: areas.map((area) => toJson(area, pages)) })
      else for (const line of listLines(areas, pages)) print(line)
      process.exitCode = isOk ? 0 : 1
    })
}

type Pages = (code: Finding['code']) => string

function toJson({ findings, ...area }: AreaReport, pages: Pages) {
  return { ...area, findings: findings.map((finding) => ({ ...finding, page: pages(finding.code) })) }
}

const WIDTH = Math.max(...Object.values(FINDING_AREAS).map((area) => area.length)) + 2

function listLines(areas: readonly AreaReport[], pages: Pages): string[] {
  const lines = areas.flatMap(({ area, status, findings, notes }) => [
    `${area.padEnd(WIDTH)}${status}`,
    ...notes.map((note) => `  ${note}`),
    ...findings.flatMap((finding) => [
      `  ${finding.severity} ${finding.code}: ${finding.detail}`,
      `    ${finding.remedy} (${pages(finding.code)})`,
    ]),
  ])
  const count = (severity: Finding['severity']) =>
    areas.flatMap(({ findings }) => findings).filter((finding) => finding.severity === severity).length
  return [...lines, `${count('failure')} failures, ${count('warning')} warnings`]
}
