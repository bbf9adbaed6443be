import type { StatementCost, Usage } from '../meter.ts'
import type { WorkCost } from './stage-load.ts'

/** Cost of deliveries, in total. */
export interface DeliveryCost extends WorkCost {
  delivered: number
}

const LISTED_STATEMENTS = 6
const QUERY_LENGTH = 90

/** A member of the usage for each delivery; undefined where it was not counted or nothing was delivered. Pure. */
export function perDelivery({ delivered, usage }: DeliveryCost, member: keyof Usage): number | undefined {
  const total = usage[member]
  return total === undefined || delivered === 0 ? undefined : total / delivered
}

/** CPU of the service and of PostgreSQL for each delivery, ms. Pure. */
export function cpuPerDelivery(cost: DeliveryCost): number | undefined {
  const [service, postgres] = [perDelivery(cost, 'processMs'), perDelivery(cost, 'postgresMs')]
  return service === undefined || postgres === undefined ? undefined : service + postgres
}

/** Cost of a delivery, in one sentence. Pure. */
export function describeCost(cost: DeliveryCost): string {
  const show = (value: number | undefined, unit: string) => `${value === undefined ? '-' : value.toFixed(2)} ${unit}`
  const wal = perDelivery(cost, 'walBytes')
  return [
    `A delivery took ${show(perDelivery(cost, 'processMs'), 'ms of CPU in the service')}`,
    `${show(perDelivery(cost, 'postgresMs'), 'ms in PostgreSQL')}`,
    `${show(perDelivery(cost, 'statements'), 'statements')}`,
    `${show(wal === undefined ? undefined : wal / 1000, 'kB of WAL')}.`,
  ].join(', ')
}

/** Where the time went: the share of a core each side used, and the statements that took longest. Pure. */
export function explainCost(cost: DeliveryCost): string[] {
  const { delivered, usage, wallMs, statements } = cost
  const share = (ms: number | undefined) => (ms === undefined ? '-' : `${Math.round((100 * ms) / wallMs)} %`)
  const used = `the service used ${share(usage.processMs)}, PostgreSQL ${share(usage.postgresMs)}`
  const cores = `Of one core ${used}, other machines of the host ${share(usage.stolenMs)}.`
  const longest = statements
    .filter(({ calls }) => calls > 0)
    .sort((a, b) => b.totalMs - a.totalMs)
    .slice(0, LISTED_STATEMENTS)
  return [cores, ...longest.map((item) => describeStatement(item, delivered))]
}

function describeStatement({ query, calls, totalMs }: StatementCost, delivered: number): string {
  const text = query.replaceAll(/\s+/g, ' ').trim().slice(0, QUERY_LENGTH)
  const each = (value: number) => (delivered === 0 ? '-' : (value / delivered).toFixed(3))
  return `${each(totalMs)} ms a delivery in ${each(calls)} calls: ${text}`
}
