import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { VARIABLES } from '../src/app/config-variables.ts'
import { ROUTE_TREE } from '../src/app/route-tree.ts'
import { SOCIAL_VARIABLES } from '../src/app/social-settings.ts'
import { buildCatalogue } from '../src/catalogue/catalogue.ts'
import { renderCatalogueFiles } from '../src/catalogue/catalogue-files.ts'
import { startEmbeddedPostgres } from '../src/postgres/embedded.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { systemRandom } from '../src/random.ts'
import { renderClientTypes } from './client-types.ts'
import { renderConfigurationDocs, renderEnvExample } from './configuration.ts'
import { renderDashboard } from './grafana-dashboard.ts'
import { readOpenApi } from './openapi.ts'
import { renderProviderMarks } from './provider-marks.ts'
import { renderSchema } from './schema.ts'

/**
 * Writes every generated file of the repository, or with `--check` compares them and exits 1 on a difference:
 * the catalogue and its docs, openapi.json and the types made of it, .env.example, docs/configuration.md,
 * schema.sql and the table types, and the dashboard of deploy/grafana.
 */

const ROOT = join(import.meta.dirname, '..')
/** Every setting, with those whose names hold the name of a provider. */
const DOCUMENTED = { ...VARIABLES, ...SOCIAL_VARIABLES }
const isCheck = process.argv.includes('--check')

const dataDir = await mkdtemp(join(tmpdir(), 'signalbox generate '))
const postgres = await startEmbeddedPostgres({
  dataDir,
  random: systemRandom,
  log: () => {},
  settings: { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' },
})
try {
  await migrate(postgres.connectionString)
  const openApi = await readOpenApi(postgres.connectionString)
  const files = new Map([
    ...renderCatalogueFiles(buildCatalogue(ROUTE_TREE)),
    ['openapi.json', `${JSON.stringify(openApi, null, 2)}\n`],
    ['test/client/api.generated.ts', renderClientTypes(openApi)],
    ['.env.example', renderEnvExample(DOCUMENTED)],
    ['docs/configuration.md', renderConfigurationDocs(DOCUMENTED)],
    ['deploy/grafana/signalbox.json', renderDashboard()],
    ['src/social-login/provider-marks.generated.ts', renderProviderMarks()],
    ['schema.sql', await renderSchema(postgres.connectionString)],
    ['src/postgres/tables.generated.ts', await renderTables(postgres.connectionString)],
  ])
  const changed: string[] = []
  for (const [path, text] of files) {
    const committed = await readFile(join(ROOT, path), 'utf8').catch(() => '')
    if (committed === text) continue
    changed.push(path)
    if (isCheck) continue
    await mkdir(dirname(join(ROOT, path)), { recursive: true })
    await writeFile(join(ROOT, path), text)
  }
  for (const path of changed) console.log(`${isCheck ? 'differs' : 'wrote'}: ${path}`)
  if (isCheck && changed.length > 0) {
    console.error('Generated files differ from what generates them. Run: npm run generate')
    process.exitCode = 1
  }
} finally {
  await postgres.stop()
  await rm(dataDir, { recursive: true, force: true })
}

/** Table types by kysely-codegen. The migrations' own table is not the service's business. */
async function renderTables(connectionString: string): Promise<string> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query('drop table schema_migration')
  // A view's columns say nothing of null: a table with the columns of its base stands for it here.
  await client.query(`
    drop view webhook_dispatch;
    create table webhook_dispatch (like webhook_dispatch_open including defaults, ended_at timestamptz(3))`)
  await client.end()
  const out = join(dataDir, 'tables.ts')
  const command = join(ROOT, 'node_modules', 'kysely-codegen', 'dist', 'cli', 'bin.js')
  const types = JSON.stringify({ int8: 'number' })
  execFileSync(
    process.execPath,
    [command, '--dialect', 'postgres', '--url', connectionString, '--out-file', out, '--type-mapping', types],
    { stdio: 'pipe' },
  )
  return readFile(out, 'utf8')
}
