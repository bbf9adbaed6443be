import type { SchemaElement } from 'hyparquet'

/** Kinds of rows in an archive: ended deliveries with their attempts, and events. */
export const ARCHIVE_KINDS = ['deliveries', 'events'] as const
export type ArchiveKind = (typeof ARCHIVE_KINDS)[number]

/** A row as the database gives it: plain values, and instants as text. */
export type ArchiveRow = Readonly<Record<string, unknown>>

type ColumnType = 'text' | 'instant' | 'integer' | 'real' | 'flag'

interface Column {
  name: string
  type: ColumnType
  isRequired: boolean
}

const column = (name: string, type: ColumnType = 'text'): Column => ({ name, type, isRequired: false })
const required = (name: string, type: ColumnType = 'text'): Column => ({ name, type, isRequired: true })

const ATTEMPTS = 'attempts_log'

/** Columns of the attempts, without the answers: one may repeat the secret headers of a webhook. */
const ATTEMPT_COLUMNS: readonly Column[] = [
  required('attempt', 'integer'),
  required('trigger'),
  required('started_at', 'instant'),
  required('duration_ms', 'integer'),
  column('status_code', 'integer'),
  column('error_class'),
  ...['dns_ms', 'connect_ms', 'tls_ms', 'first_byte_ms', 'total_ms'].map((name) => column(name, 'real')),
]

/** The columns of each kind, named as in the API. None of them holds a secret or a header. */
const COLUMNS: Readonly<Record<ArchiveKind, readonly Column[]>> = {
  deliveries: [
    required('document_id'),
    required('webhook'),
    required('event_id'),
    required('event'),
    column('account'),
    required('status'),
    required('attempts', 'integer'),
    column('last_attempt_at', 'instant'),
    column('last_status_code', 'integer'),
    column('last_error'),
    column('last_duration_ms', 'integer'),
    column('delivered_at', 'instant'),
    required('ended_at', 'instant'),
    required('is_test', 'flag'),
    required('is_replay', 'flag'),
    required('created_at', 'instant'),
    required('updated_at', 'instant'),
  ],
  events: [
    required('document_id'),
    required('event'),
    column('account'),
    required('resource'),
    required('action'),
    column('resource_id'),
    column('url'),
    required('is_purge', 'flag'),
    column('routed_at', 'instant'),
    required('created_at', 'instant'),
  ],
}

const TYPES: Readonly<Record<ColumnType, Partial<SchemaElement>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  instant: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
  integer: { type: 'INT32' },
  real: { type: 'DOUBLE' },
  flag: { type: 'BOOLEAN' },
}

const elementOf = ({ name, type, isRequired }: Column): SchemaElement => ({
  name,
  ...TYPES[type],
  repetition_type: isRequired ? 'REQUIRED' : 'OPTIONAL',
})

/** The Parquet schema of a kind. Pure. */
export function buildSchema(kind: ArchiveKind): SchemaElement[] {
  const plain = COLUMNS[kind].map(elementOf)
  if (kind === 'events') return [{ name: 'event', num_children: plain.length }, ...plain]
  return [
    { name: 'delivery', num_children: plain.length + 1 },
    ...plain,
    {
      ...{ name: ATTEMPTS, converted_type: 'LIST', logical_type: { type: 'LIST' } },
      ...{ repetition_type: 'REQUIRED', num_children: 1 },
    },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    { name: 'element', repetition_type: 'REQUIRED', num_children: ATTEMPT_COLUMNS.length },
    ...ATTEMPT_COLUMNS.map(elementOf),
  ]
}

/** The rows as columns of a Parquet file. Pure. */
export function toColumnData(kind: ArchiveKind, rows: readonly ArchiveRow[]): { name: string; data: unknown[] }[] {
  const plain = COLUMNS[kind].map((of) => ({ name: of.name, data: rows.map((row) => cellOf(of, row)) }))
  if (kind === 'events') return plain
  const attempts = rows.map((row) =>
    (row[ATTEMPTS] as ArchiveRow[]).map((attempt) =>
      Object.fromEntries(ATTEMPT_COLUMNS.map((of) => [of.name, cellOf(of, attempt)])),
    ),
  )
  return [...plain, { name: ATTEMPTS, data: attempts }]
}

function cellOf({ name, type }: Column, row: ArchiveRow): unknown {
  const value = row[name]
  if (value === null || value === undefined) return null
  return type === 'instant' ? new Date(value as string) : value
}
