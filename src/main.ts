import { Command } from 'commander'
import { describeFatal } from './app/fatal.ts'
import { addAdminCommands } from './command/admin.ts'
import { addCatalogueCommands } from './command/catalogue.ts'
import { addDoctorCommand } from './command/doctor.ts'
import { watchLauncher } from './command/launcher.ts'
import { addListenCommand } from './command/listen.ts'
import { addMigrateCommand } from './command/migrate.ts'
import { addOauthCommands } from './command/oauth.ts'
import { addReplayCommand } from './command/replay.ts'
import { addSecretsCommands } from './command/secrets.ts'
import { addServeCommand } from './command/serve.ts'
import { addTriggerCommand } from './command/trigger.ts'
import { addVerifyCommand } from './command/verify.ts'
import { VERSION } from './version.ts'

const program = new Command('signalbox')
  .description('Signed webhooks, identity and realtime for a platform.')
  .version(VERSION)
  .showHelpAfterError()

addServeCommand(program, watchLauncher())
addMigrateCommand(program)
addDoctorCommand(program)
addCatalogueCommands(program)
addAdminCommands(program)
addOauthCommands(program)
addSecretsCommands(program)
addListenCommand(program)
addTriggerCommand(program)
addVerifyCommand(program)
addReplayCommand(program)

try {
  await program.parseAsync()
} catch (error) {
  process.stderr.write(`${describeFatal(error)}\n`)
  process.exit(1)
}
