import type { Schemas } from '@signalbox/client'
import { type HeaderRow, toHeaders } from '../header-rows.ts'
import { toMaxPerSecond } from '../max-per-second.ts'
import type { Mode } from '../mode.tsx'
import { listLines } from '../resource-ids.ts'

/** Input of a new webhook. */
export interface Draft {
  mode: Mode
  url: string
  name: string
  description: string
  isGlobal: boolean
  account: string
  /** One id a line. */
  resources: string
  headers: readonly HeaderRow[]
  isAsymmetric: boolean
  /** A secret that another system has made; empty for a new one. */
  secret: string
  /** Empty for no limit. */
  maxPerSecond: string
  events: ReadonlySet<string>
}

export type OnChange = (change: Partial<Draft>) => void

/** The draft as the API takes it. Pure. */
export function toBody({
  mode,
  url,
  name,
  description,
  isGlobal,
  account,
  resources,
  headers: rows,
  isAsymmetric,
  secret,
  maxPerSecond,
  events,
}: Draft): Schemas['CreateWebhook'] {
  const ids = listLines(resources)
  const headers = toHeaders(rows)
  const limit = toMaxPerSecond(maxPerSecond)
  return {
    ...(mode === 'pull' ? { mode } : { url: url.trim() }),
    is_global: isGlobal,
    ...(!isGlobal && account !== '' && { account }),
    ...(name.trim() && { name: name.trim() }),
    ...(description.trim() && { description: description.trim() }),
    ...(ids.length > 0 && { resource_ids: ids }),
    ...(mode === 'push' && Object.keys(headers).length > 0 && { headers }),
    ...(isAsymmetric && { asymmetric_signature: true }),
    ...(secret.trim() && { secret: secret.trim() }),
    ...(mode === 'push' && limit !== null && { max_per_second: limit }),
    ...(events.size > 0 && { events: [...events] }),
  }
}

/** A draft in which nothing is given. */
export const EMPTY: Omit<Draft, 'isGlobal'> = {
  ...{ mode: 'push', url: '', name: '', description: '', account: '', resources: '' },
  ...{ headers: [], isAsymmetric: false, secret: '', maxPerSecond: '', events: new Set<string>() },
}
