/** CHANGELOG.md by the form of Keep a Changelog 1.1.0. Pure. */

/** Headings of a version, in their order. "Upgrade" is ours: the steps that an operator takes (docs/contract/versioning.md). */
const KINDS = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security', 'Upgrade']

const UNRELEASED = '[Unreleased]'
const RELEASED = /^\[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$/

/** A version, or what the next one brings. */
interface Section {
  title: string
  /** Its headings, each with its text. */
  parts: { kind: string; text: string }[]
  text: string
}

function splitAt(text: string, mark: string): { title: string; text: string }[] {
  return text
    .split(`\n${mark} `)
    .slice(1)
    .map((part) => {
      const [title = '', ...lines] = part.split('\n')
      return { title, text: lines.join('\n') }
    })
}

function parseSections(changelog: string): Section[] {
  return splitAt(changelog, '##').map(({ title, text }) => ({
    ...{ title, text },
    parts: splitAt(`\n${text}`, '###').map((part) => ({ kind: part.title, text: part.text })),
  }))
}

/** Section of a version; undefined when it has none. That of the next version is `Unreleased`. */
export function findSection(changelog: string, version: string): string | undefined {
  const isWanted = ({ title }: Section) => title === `[${version}]` || title.startsWith(`[${version}] - `)
  return parseSections(changelog).find(isWanted)?.text
}

/** Differences from the form, a sentence for each; empty for a changelog that has it. */
export function findFaults(changelog: string): string[] {
  const sections = parseSections(changelog)
  const faults = changelog.startsWith('# Changelog\n') ? [] : ['The first line is not "# Changelog".']
  if (sections[0]?.title !== UNRELEASED) faults.push(`The first section is not "## ${UNRELEASED}".`)
  const released = sections.slice(1).map(({ title }) => ({ title, match: RELEASED.exec(title) }))
  for (const { title, match } of released)
    if (!match || Number.isNaN(Date.parse(match[2] ?? ''))) faults.push(`"${title}" is not "[1.2.3] - 2026-11-27".`)
  for (const [index, { title, match }] of released.entries()) {
    const older = released[index + 1]
    if (!match || !older?.match) continue
    const isLater = compareVersions(match[1] ?? '', older.match[1] ?? '') > 0
    if (!isLater || (match[2] ?? '') < (older.match[2] ?? '')) faults.push(`"${title}" stands before "${older.title}".`)
  }
  return [...faults, ...sections.flatMap(findFaultsOfSection)]
}

function findFaultsOfSection({ title, parts }: Section): string[] {
  const faults = parts.flatMap(({ kind, text }) => {
    if (!KINDS.includes(kind)) return [`"${title}" has "${kind}", which is none of ${KINDS.join(', ')}.`]
    return /^- \S/m.test(text) ? [] : [`"${kind}" of "${title}" has no entry.`]
  })
  const order = parts.map(({ kind }) => KINDS.indexOf(kind)).filter((place) => place >= 0)
  if (order.some((place, index) => index > 0 && place <= (order[index - 1] ?? 0)))
    faults.push(`"${title}" has its headings twice or out of order: ${parts.map(({ kind }) => kind).join(', ')}.`)
  return faults
}

function compareVersions(base: string, other: string): number {
  const [left, right] = [base, other].map((version) => version.split('.').map(Number))
  const at = [0, 1, 2].find((index) => left?.[index] !== right?.[index])
  return at === undefined ? 0 : (left?.[at] ?? 0) - (right?.[at] ?? 0)
}
