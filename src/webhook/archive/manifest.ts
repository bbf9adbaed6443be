import type { ArchiveKind } from './archive-kind.ts'
import { ArchiveError } from './storage/archive-error.ts'

/** Webhooks of a file that its entry names; of more it names none. */
const NAMED_WEBHOOKS = 64

/** Maximum length of a manifest, in bytes: some ten years of an account. */
export const MANIFEST_BYTES = 16 * 1024 * 1024

/** The least and the greatest id of a column. */
export type IdRange = readonly [least: string, greatest: string]

export interface ArchivedFile {
  /** Its name in the place. */
  file: string
  rows: number
  bytes: number
  sha256: string
  /** Of deliveries of a later pass: they ended from this instant on, some of them again. Null for the first pass. */
  since: string | null
  ids: IdRange
  /** Of deliveries. */
  event_ids?: IdRange
  /** Of deliveries: all their webhooks; null for many. */
  webhooks?: readonly string[] | null
}

/** A row in the order of creation. */
export interface Position {
  at: string
  id: string
}

export interface ArchivedDay {
  day: string
  /** Instant before which everything that ended is in the files. */
  through: string
  /** The instant `through` of the files before those of the last pass; null for the first pass. */
  since: string | null
  /** Whether nothing of the day was open, or ended after `through`: only a replay adds a row. */
  is_closed: boolean
  /** How far a pass has come that has not ended. */
  position: Position | null
  files: readonly ArchivedFile[]
}

/** The manifest of what an account, or none, has of a kind in a database. */
export interface Manifest {
  format: 1
  database: string
  kind: ArchiveKind
  account: string | null
  /** Days before this one were removed, and are not exported again. */
  removed_before?: string
  days: readonly ArchivedDay[]
}

/** Subject of a manifest. */
export type ManifestKey = Pick<Manifest, 'database' | 'kind' | 'account'>

const ownerOf = (account: string | null) => account ?? 'none'

/** The folder of manifests of a kind. */
export const manifestFolder = (kind: ArchiveKind) => `manifest/${kind}/`

export const manifestName = ({ database, kind, account }: ManifestKey) =>
  `${manifestFolder(kind)}${database}/${ownerOf(account)}.json`

const ID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const MANIFEST_NAME = new RegExp(`^manifest/(?:deliveries|events)/[a-z][a-z0-9-]{0,30}/(none|${ID})\\.json$`)

/** The account of a manifest by its name: an id, or null for none; undefined for the name of something else. */
export function accountOfManifest(name: string): string | null | undefined {
  const owner = MANIFEST_NAME.exec(name)?.[1]
  return owner === 'none' ? null : owner
}

/** The name of the nth file of a day. */
export const fileName = ({ database, kind, account }: ManifestKey, day: string, number: number) =>
  `${ownerFolder({ database, kind, account })}day=${day}/${number}.parquet`

/** The folder of the files of an account, or of none. */
export const ownerFolder = ({ database, kind, account }: ManifestKey) =>
  `${kind}/database=${database}/owner=${ownerOf(account)}/`

/** The day of a file by its name; undefined for the name of something else. */
export const dayOfFile = (name: string): string | undefined => /\/day=(\d{4}-\d\d-\d\d)\/\d+\.parquet$/.exec(name)?.[1]

/** Collects what the entry of a file says of its rows. */
export class FileSummary {
  rows = 0
  #ids: [string, string] | undefined
  #eventIds: [string, string] | undefined
  readonly #webhooks = new Set<string>()

  add(row: Readonly<Record<string, unknown>>): void {
    this.rows += 1
    this.#ids = widen(this.#ids, row.document_id as string)
    if (row.event_id !== undefined) this.#eventIds = widen(this.#eventIds, row.event_id as string)
    if (row.webhook !== undefined && this.#webhooks.size <= NAMED_WEBHOOKS) this.#webhooks.add(row.webhook as string)
  }

  /** Of a file with rows. */
  build(): Pick<ArchivedFile, 'rows' | 'ids' | 'event_ids' | 'webhooks'> {
    const webhooks = this.#webhooks.size > NAMED_WEBHOOKS ? null : [...this.#webhooks].sort()
    return {
      rows: this.rows,
      ids: this.#ids as IdRange,
      ...(this.#eventIds && { event_ids: this.#eventIds, webhooks }),
    }
  }
}

const widen = (range: [string, string] | undefined, id: string): [string, string] =>
  range ? [id < range[0] ? id : range[0], id > range[1] ? id : range[1]] : [id, id]

/** Parses the manifest of `key`. Throws `manifest_invalid` for what the export did not write. */
export function parseManifest(text: string, name: string): Manifest {
  const value = readJson(text)
  if (!isManifest(value))
    throw new ArchiveError(
      'manifest_invalid',
      `${name} is no manifest of this version. Restore it, or use another place.`,
    )
  return value
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown, pattern: RegExp) =>
  typeof value === 'string' && value.length <= 256 && pattern.test(value)
const isInstant = (value: unknown) => isText(value, /^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/)
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0
const isId = (value: unknown) => isText(value, new RegExp(`^${ID}$`))
const isRange = (value: unknown) => Array.isArray(value) && value.length === 2 && value.every(isId)

const isPosition = (value: unknown) => isMembers(value) && isInstant(value.at) && isId(value.id)

function isManifest(value: unknown): value is Manifest {
  return (
    isMembers(value) &&
    value.format === 1 &&
    isText(value.database, /^[a-z][a-z0-9-]{0,30}$/) &&
    isText(value.kind, /^(?:deliveries|events)$/) &&
    (value.account === null || isId(value.account)) &&
    (value.removed_before === undefined || isText(value.removed_before, /^\d{4}-\d\d-\d\d$/)) &&
    Array.isArray(value.days) &&
    value.days.every(isDay)
  )
}

function isDay(value: unknown): boolean {
  return (
    isMembers(value) &&
    isText(value.day, /^\d{4}-\d\d-\d\d$/) &&
    isInstant(value.through) &&
    (value.since === null || isInstant(value.since)) &&
    typeof value.is_closed === 'boolean' &&
    (value.position === null || isPosition(value.position)) &&
    Array.isArray(value.files) &&
    value.files.every(isFile)
  )
}

function isFile(value: unknown): boolean {
  return (
    isMembers(value) &&
    isText(value.file, /^(?:deliveries|events)\/[a-z0-9=/-]+\.parquet$/) &&
    [value.rows, value.bytes].every(isCount) &&
    isText(value.sha256, /^[0-9a-f]{64}$/) &&
    (value.since === null || isInstant(value.since)) &&
    isRange(value.ids) &&
    (value.event_ids === undefined || isRange(value.event_ids)) &&
    (value.webhooks === undefined ||
      value.webhooks === null ||
      (Array.isArray(value.webhooks) && value.webhooks.every(isId)))
  )
}
