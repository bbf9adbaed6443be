import type { Config } from '../../app/config/config.ts'
import { FatalError } from '../../app/log/fatal.ts'
import { systemClock } from '../../base/clock.ts'
import { buildIdMaker } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { buildRecorder, withFixture } from '../database/resources.ts'
import { print } from '../print/print.ts'
import { listExportFiles, readExportFiles } from './people/export-files.ts'
import { describeResult, describeSummary, isWorthALine, type PeopleResult } from './people/people-report.ts'
import type { PeopleSourceName } from './people/people-source-name.ts'
import type { PeopleSource } from './people/person.ts'
import { runPeopleImport } from './people/run-people-import.ts'
import { keycloak } from './people/source/keycloak.ts'
import { logto } from './people/source/logto.ts'
import { supabaseAuth } from './people/source/supabase-auth.ts'

const SOURCES: Readonly<Record<PeopleSourceName, PeopleSource>> = { 'supabase-auth': supabaseAuth, keycloak, logto }

/** The options of `signalbox import supabase-auth | keycloak | logto`. */
export interface PeopleOptions {
  from: string
  provider?: string[]
  rpId?: string
  apply: boolean
  dryRun: boolean
  json: boolean
}

/** Runs the command to its end. Throws a `FatalError`, also when a person or a client was not imported. */
export async function runPeopleCommand(name: PeopleSourceName, options: PeopleOptions): Promise<void> {
  if (options.apply && options.dryRun) throw new FatalError('--apply and --dry-run exclude each other.')
  const source = SOURCES[name]
  const providerMap = readProviderMap(options.provider ?? [])
  const files = await listExportFiles(options.from)
  const onResult = (result: PeopleResult) => {
    if (options.json) print(JSON.stringify(result))
    else if (isWorthALine(result)) for (const line of describeResult(result)) print(line)
  }
  await withFixture({ prepare: true }, async ({ config, database, secrets }) => {
    const { buildBaseUrl } = await import('../../app/config/base-url.ts')
    const baseUrl = buildBaseUrl(config, () => undefined)()
    const summary = await runPeopleImport({
      source,
      readRows: () => readExportFiles(files, source.form),
      rules: {
        providers: new Set(config.socialProviders.map((provider) => provider.name)),
        publicProviders: new Set(config.socialProviders.filter(isPublic).map((provider) => provider.name)),
        providerMap,
        rpId: new URL(baseUrl).hostname,
        sourceRpId: options.rpId,
      },
      clock: systemClock,
      db: database.db,
      deps: {
        ids: buildIdMaker(systemClock, systemRandom),
        keyring: buildKeyring(secrets.secretKey, systemRandom),
      },
      record: await buildRecorder(config),
      isDryRun: !options.apply,
      onResult,
    })
    if (options.json) print(JSON.stringify({ kind: 'summary', ...summary }))
    else for (const line of describeSummary(summary)) print(line)
    const left = (summary.people.skipped ?? 0) + (summary.clients.skipped ?? 0)
    if (left > 0 && options.apply) throw new FatalError(`${left} were not imported. The report has a remedy for each.`)
  })
}

/** Whether a provider is the public server of its name. One tenant of Microsoft gives the same subjects as all. */
const isPublic = ({ name, base }: Config['socialProviders'][number]) => base === undefined || name === 'microsoft'

/** `<provider of the source>=<provider here>`. */
function readProviderMap(texts: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    texts.map((text) => {
      const at = text.lastIndexOf('=')
      if (at < 1 || at === text.length - 1)
        throw new FatalError('--provider must be <provider of the source>=<provider here>, such as company=acme-sso.')
      return [text.slice(0, at), text.slice(at + 1)]
    }),
  )
}
