import type { Resources } from '../../app/prepare/resources.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { printError } from '../print/print.ts'

/** Runs `work` on home, then on every cell. A cell that fails sets exit code 1 and stops no other. Returns the rest. */
export async function onEachDatabase(
  { database, secrets }: Pick<Resources, 'database' | 'secrets'>,
  work: (db: Database, cell: string | null) => Promise<void>,
): Promise<string[]> {
  const [{ cellContextOf, listCells }, { openDatabase }] = await Promise.all([
    import('../../postgres/cell/cell.store.ts'),
    import('../../postgres/statement/database.ts'),
  ])
  await work(database.db, null)
  const keyring = buildKeyring(secrets.secretKey, systemRandom)
  const done: string[] = []
  for (const { name, databaseUrlEncrypted } of await listCells(database.db)) {
    try {
      const connectionString = keyring.open(databaseUrlEncrypted, cellContextOf(name))
      const pool = openDatabase({ connectionString, size: 1, applicationName: 'signalbox command', onError: () => {} })
      try {
        await work(pool.db, name)
      } finally {
        await pool.close()
      }
      done.push(name)
    } catch (error) {
      // The text may name the host; the connection string is not in it.
      printError(
        `The cell ${name} was left out (${describe(error)}): run the command again, and see docs/operations/cells.md, a cell that is away.`,
      )
      process.exitCode = 1
    }
  }
  return done
}

const describe = (error: unknown) => (error as { code?: string } | null)?.code ?? 'failed'
