import { readFileSync, statSync } from 'node:fs'
import { readClientConfig } from '../../app/config/client-config.ts'
import { httpUrl } from '../../app/config/config-parsers.ts'
import { VARIABLES } from '../../app/config/config-variables.ts'
import { FatalError } from '../../app/log/fatal.ts'
import { systemClock } from '../../base/clock.ts'
import { isUuid } from '../../base/id.ts'
import { print, printJson } from '../print/print.ts'
import type { ApiClient } from '../receiver/api-client.ts'
import { openClient } from '../receiver/client-options.ts'
import { readEventMap } from './event-map.ts'
import { readHistory } from './history.ts'
import type { ImportOptions } from './import-options.ts'
import type { PlanRules } from './plan.ts'
import { countOutcomes, describeAccount, describeEnd, describeWebhook } from './report.ts'
import { runImport } from './run-import.ts'
import { convoy } from './source/convoy.ts'
import { MAX_EXPORT_BYTES, readExport } from './source/export-file.ts'
import { isObject } from './source/foreign.ts'
import { hook0 } from './source/hook0.ts'
import { outpost } from './source/outpost.ts'
import type { Source, SourceApi, SourceName } from './source/source.ts'
import { buildSourceClient } from './source/source-client.ts'
import { svix } from './source/svix.ts'

const SOURCES: Readonly<Record<SourceName, Source>> = { svix, convoy, outpost, hook0 }

/** Longest file of --events and --accounts, in bytes. */
const MAX_MAP_BYTES = 8 * 1024 * 1024

/** Runs `signalbox import` to its end. Throws a `FatalError`, also when a row was not imported. */
export async function runImportCommand(name: SourceName, options: ImportOptions): Promise<void> {
  if (options.apply && options.dryRun) throw new FatalError('--apply and --dry-run exclude each other.')
  const { from, api } = openSource(SOURCES[name], options)
  const client = openClient({ ...(options.url !== undefined && { url: options.url }) })
  const rules = await readRules(client, options)
  const isDryRun = !options.apply
  const report = await runImport({
    from,
    api,
    client,
    rules,
    isDryRun,
    clock: systemClock,
    source: from.name,
    history: await readHistory(client, from.name),
    choice: { only: [...new Set(options.only)], organization: options.organization },
    accounts: readAccounts(options.accounts),
    onAccount: (result) => options.json || print(describeAccount(result)),
    onWebhook: (result) => {
      if (!options.json) for (const line of describeWebhook(result)) print(line)
    },
  })
  const counts = countOutcomes([...report.accounts, ...report.webhooks])
  if (options.json) printJson({ ...report, signature: from.signature, counts })
  else for (const line of describeEnd(report, from)) print(line)
  const left = (counts.skipped ?? 0) + (counts.refused ?? 0)
  if (left > 0 && !isDryRun) throw new FatalError(`Not imported: ${left}. The report has a remedy for each.`)
}

function openSource(named: Source, { from, tokenFile }: ImportOptions): { from: Source; api: SourceApi } {
  if (!/^https?:/i.test(from)) {
    const api = { get: () => Promise.reject(new Error('an export file answers no request')) }
    return { from: readExport(named, readText(from, MAX_EXPORT_BYTES)), api }
  }
  const baseUrl = parseOption('--from', from, httpUrl)
  const token =
    tokenFile === undefined
      ? readClientConfig().importToken
      : parseOption(
          'The text of --token-file',
          readText(tokenFile, 65_536).trim(),
          VARIABLES.SIGNALBOX_IMPORT_TOKEN.parse,
        )
  if (token === undefined)
    throw new FatalError('There is no token for the source. Give it with --token-file or SIGNALBOX_IMPORT_TOKEN.')
  return { from: named, api: buildSourceClient({ baseUrl, token, sleep: (ms) => systemClock.sleep(ms) }) }
}

/** The error has the name of the option and not its value, which may be a secret. */
function parseOption<Value>(option: string, text: string, parse: (text: string) => Value): Value {
  try {
    return parse(text)
  } catch (error) {
    throw new FatalError(`${option} ${(error as Error).message}.`)
  }
}

async function readRules(client: ApiClient, { events, ignoreFilters, leaveOut }: ImportOptions): Promise<PlanRules> {
  const request = { filters: ['is_actived|eq|true'] }
  const types = await client.listAll<{ internal: string }>('/api/v3/webhook/event', request)
  const known = new Set(types.map(({ internal }) => internal))
  const map = events === undefined ? new Map() : readEventMap(readText(events, MAX_MAP_BYTES), known)
  return { map, known, ignoreFilters, leftOut: new Set(leaveOut) }
}

function readAccounts(path: string | undefined): ReadonlyMap<string, string> {
  if (path === undefined) return new Map()
  let value: unknown
  try {
    value = JSON.parse(readText(path, MAX_MAP_BYTES))
  } catch (error) {
    if (error instanceof FatalError) throw error
    throw new FatalError('The file of --accounts is not JSON.')
  }
  const entries = isObject(value) ? Object.entries(value) : undefined
  const isId = (id: unknown) => typeof id === 'string' && isUuid(id)
  if (entries?.every(([, id]) => isId(id))) return new Map(entries as [string, string][])
  throw new FatalError(
    'The file of --accounts must be an object, such as {"<id of the source>": "<id of an account>"}.',
  )
}

function readText(path: string, limit: number): string {
  let size: number
  let text: string
  try {
    size = statSync(path).size
    text = size > limit ? '' : readFileSync(path, 'utf8')
  } catch (error) {
    throw new FatalError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
  if (size > limit) throw new FatalError(`${path} is longer than ${limit / 1024 / 1024} MiB.`)
  return text
}
