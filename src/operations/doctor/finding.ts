/** Subjects of `signalbox doctor`, in the order of its report. */
export const AREAS = [
  'settings',
  'database',
  'schema',
  'keys',
  'clock',
  'names',
  'disk',
  'ports',
  'egress',
  'event_log',
  'runtime',
] as const
export type Area = (typeof AREAS)[number]

/** Every finding, with its area. Stable; each has a section in docs/guides/doctor.md. */
export const FINDING_AREAS = {
  setting_invalid: 'settings',
  setting_unknown: 'settings',
  setting_without_effect: 'settings',
  base_url_missing: 'settings',
  base_url_public: 'settings',
  environment_contradicts: 'settings',
  database_unreachable: 'database',
  database_in_use: 'database',
  database_too_old: 'database',
  database_read_only: 'database',
  database_without_privilege: 'database',
  database_encoding: 'database',
  database_not_durable: 'database',
  database_loses_commits: 'database',
  database_standby_asynchronous: 'database',
  database_commits_wait: 'database',
  replica_unreachable: 'database',
  replica_unproven: 'database',
  replica_is_primary: 'database',
  database_connections_short: 'database',
  database_connections_used: 'database',
  schema_behind: 'schema',
  schema_newer: 'schema',
  schema_unusable: 'schema',
  key_opens_nothing: 'keys',
  key_missing: 'keys',
  key_rotation_unfinished: 'keys',
  secret_guessable: 'keys',
  secret_shared: 'keys',
  clock_differs: 'clock',
  name_servers_missing: 'names',
  name_unresolved: 'names',
  data_dir_unwritable: 'disk',
  disk_low: 'disk',
  disk_full: 'disk',
  disk_full_before_retention: 'disk',
  port_in_use: 'ports',
  port_of_running_service: 'ports',
  port_not_permitted: 'ports',
  host_unknown: 'ports',
  proxy_ignored: 'egress',
  private_targets_allowed: 'egress',
  server_unreachable: 'egress',
  event_log_unreachable: 'event_log',
  event_log_refused: 'event_log',
  event_log_unsuitable: 'event_log',
  event_log_not_durable: 'event_log',
  event_log_durability_unknown: 'event_log',
  event_log_one_copy: 'event_log',
  event_log_behind: 'event_log',
  event_log_left_on: 'event_log',
  realtime_bus_closed: 'event_log',
  cells_broken: 'event_log',
  node_outdated: 'runtime',
  open_files_low: 'runtime',
} as const satisfies Record<string, Area>
export type FindingCode = keyof typeof FINDING_AREAS

/** A fault or a note for the operator. */
export interface Finding {
  code: FindingCode
  /** A failure stops the service or loses data; a warning does not. */
  severity: 'failure' | 'warning'
  /** Finding, with its figures. Never contains a secret. */
  detail: string
  remedy: string
}

/** Builds a finding that stops the service or loses data. */
export function fail(code: FindingCode, detail: string, remedy: string): Finding {
  return { code, severity: 'failure', detail, remedy }
}

/** Builds a warning. */
export function warn(code: FindingCode, detail: string, remedy: string): Finding {
  return { code, severity: 'warning', detail, remedy }
}

/** The result of one area: `skipped` when its facts could not be gathered because of a finding in another area. */
export interface AreaReport {
  area: Area
  status: 'ok' | 'warning' | 'failure' | 'skipped'
  findings: Finding[]
  /** Figures shown also without a finding. */
  notes: string[]
}

/** Sorts findings by area. `skipped`: the areas whose facts are missing. */
export function buildReport(
  findings: readonly Finding[],
  skipped: readonly Area[],
  notes: Partial<Record<Area, readonly string[]>> = {},
): AreaReport[] {
  return AREAS.map((area) => {
    const own = findings.filter(({ code }) => FINDING_AREAS[code] === area)
    return { area, status: decideStatus(own, skipped.includes(area)), findings: own, notes: [...(notes[area] ?? [])] }
  })
}

function decideStatus(own: readonly Finding[], isSkipped: boolean): AreaReport['status'] {
  if (own.some(({ severity }) => severity === 'failure')) return 'failure'
  if (own.length > 0) return 'warning'
  return isSkipped ? 'skipped' : 'ok'
}
