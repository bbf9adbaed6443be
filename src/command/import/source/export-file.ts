import { FatalError } from '../../../app/log/fatal.ts'
import { type Foreign, isObject, readList, readObject } from './foreign.ts'
import type { Source } from './source.ts'

/** Longest export file, in bytes. It is read whole. */
export const MAX_EXPORT_BYTES = 64 * 1024 * 1024

/**
 * A source that reads an export file in place of its API: `{ "source": "svix", "tenants": [{ ..., "endpoints": [...] }] }`, rows as
 * the API answers them, with what `complete` adds. Throws a `FatalError`.
 */
export function readExport(source: Source, text: string): Source {
  const file = readObject(parseFile(text), 'The export file')
  if (file.source !== source.name)
    throw new FatalError(`The export file must have "source": "${source.name}". Name the source it comes from.`)
  const rows = readList(file.tenants, 'tenants of the export file').map((row) => readObject(row, 'An entry of tenants'))
  const byId = new Map<string, Foreign>(rows.map((row) => [source.readTenant(row).id, row]))
  if (byId.size !== rows.length) throw new FatalError('The export file has two entries of tenants with one id.')
  const { complete: _fromApi, ...rest } = source
  return {
    ...rest,
    async *listTenants(_api, { only }) {
      for (const id of only)
        if (!byId.has(id)) throw new FatalError(`The export file has no entry of tenants with the id ${id} of --only.`)
      yield* only.length === 0 ? rows : rows.filter((row) => only.includes(source.readTenant(row).id))
    },
    async *listEndpoints(_api, { id }) {
      const endpoints = readList(byId.get(id)?.endpoints ?? [], 'endpoints of an entry of tenants')
      for (const row of endpoints) yield readObject(row, 'An entry of endpoints')
    },
  }
}

function parseFile(text: string): Foreign | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    throw new FatalError('The export file is not JSON.')
  }
}
