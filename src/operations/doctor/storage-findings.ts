import type { StorageForecast } from '../storage/storage.ts'
import { type Finding, fail, warn } from './finding.ts'

/** Number of days in which an operator can get a disk. */
const FAILURE_DAYS = 3

const DAY_MS = 24 * 3_600_000

/** Sizes in the units of disks: 1 GB is a billion bytes. */
function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']
  const unit = Math.min(units.length - 1, bytes < 1 ? 0 : Math.floor(Math.log10(bytes) / 3))
  return `${(bytes / 1_000 ** unit).toFixed(unit === 0 ? 0 : 1)} ${units[unit]}`
}

const nameOf = (cell: string | undefined) => (cell === undefined ? 'database' : `cell ${cell}`)

/** Size, bytes of an event and growth of a day, in one line. `cell`: of another database than home. */
export function describeStorage(forecast: StorageForecast, now: number, cell?: string): string {
  const { databaseBytes, freeBytes, bytesPerEvent, growthPerDay, fullInDays } = forecast
  const parts = [
    `the ${nameOf(cell)} takes ${formatBytes(databaseBytes)}`,
    freeBytes === undefined
      ? `free disk space unknown (${cell === undefined ? 'DATABASE' : 'CELL'}_DISK_BYTES)`
      : `${formatBytes(freeBytes)} are left`,
  ]
  if (bytesPerEvent === undefined || growthPerDay === undefined)
    return [...parts, 'too few events for a forecast'].join(', ')
  parts.push(`an event keeps ${formatBytes(bytesPerEvent)}`, `the last days brought ${formatBytes(growthPerDay)} each`)
  if (fullInDays === null) parts.push('retention keeps up with it')
  else if (fullInDays !== undefined) parts.push(`full on ${formatDay(fullInDays, now)}`)
  return parts.join(', ')
}

const formatDay = (days: number, now: number) => new Date(now + days * DAY_MS).toISOString().slice(0, 10)

/** Whether the disk fills before retention deletes as much as is added. `cell`: of another database than home. */
export function classifyStorage(forecast: StorageForecast, now: number, cell?: string): Finding[] {
  const { freeBytes, bytesPerEvent, growthPerDay, fullInDays } = forecast
  if (fullInDays === null || fullInDays === undefined || bytesPerEvent === undefined || growthPerDay === undefined)
    return []
  const build = fullInDays < FAILURE_DAYS ? fail : warn
  return [
    build(
      'disk_full_before_retention',
      `The disk of the ${nameOf(cell)} is full on ${formatDay(fullInDays, now)}, in ${fullInDays.toFixed(1)} days, before retention deletes as much as comes: ${formatBytes(freeBytes ?? 0)} are left, ${formatBytes(growthPerDay)} come each day, ${formatBytes(bytesPerEvent)} an event.`,
      `Give ${cell === undefined ? 'the database' : 'the cell'} a larger disk,${cell === undefined ? '' : ' move accounts away,'} or lower WEBHOOK_LEDGER_RETENTION_DAYS and AUDIT_RETENTION_DAYS before that day.`,
    ),
  ]
}
