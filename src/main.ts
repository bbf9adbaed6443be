import { Command } from 'commander'
import { addAdminCommands } from './command/admin.ts'
import { addCatalogueCommands } from './command/catalogue.ts'
import { addMigrateCommand } from './command/migrate.ts'
import { addServeCommand } from './command/serve.ts'
import { describeFatal } from './fatal.ts'
import { VERSION } from './version.ts'

const program = new Command('signalbox')
  .description('Signed webhooks, identity and realtime for a platform.')
  .version(VERSION)
  .showHelpAfterError()

addServeCommand(program)
addMigrateCommand(program)
addCatalogueCommands(program)
addAdminCommands(program)

try {
  await program.parseAsync()
} catch (error) {
  process.stderr.write(`${describeFatal(error)}\n`)
  process.exit(1)
}
