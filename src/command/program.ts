import { Command, CommanderError } from 'commander'
import { describeFatal } from '../app/log/fatal.ts'
import { VERSION } from '../base/version.ts'
import { addAdminCommands } from './admin.ts'
import { addCatalogueCommands } from './catalogue.ts'
import { addCellCommands } from './cell.ts'
import { addDoctorCommand } from './doctor.ts'
import { addEventLogCommands } from './event-log.ts'
import { addImportCommands } from './import/import.ts'
import type { Launcher } from './launcher.ts'
import { addLedgerCommands } from './ledger/ledger.ts'
import { addAccountCommands } from './manage/account.ts'
import { addClientCommands } from './manage/client.ts'
import { addInviteCommands } from './manage/invite.ts'
import { addUserCommands } from './manage/user.ts'
import { addMigrateCommand } from './migrate.ts'
import { addOauthCommands } from './oauth.ts'
import { printError } from './print/print.ts'
import { addListenCommand } from './receiver/listen.ts'
import { addReplayCommand } from './receiver/replay.ts'
import { addTriggerCommand } from './receiver/trigger.ts'
import { addVerifyCommand } from './receiver/verify.ts'
import { addSecretsCommands } from './secrets.ts'
import { addServeCommand } from './serve.ts'

/** Runs `signalbox <args>`. Resolves with the exit code of a failure, which standard error explains, else undefined. */
export async function runCommandLine(args: readonly string[], launcher?: Launcher): Promise<number | undefined> {
  try {
    await buildProgram(launcher).parseAsync(args, { from: 'user' })
    return undefined
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode
    printError(describeFatal(error))
    return 1
  }
}

const WAYS_ON = `
signalbox start runs the service with a demonstration, as npm start does in a checkout. Then, in a browser of the same machine:
  http://localhost:3000/           first steps
  http://localhost:3000/auth/      sign in
  http://localhost:3000/auth/mail  mails, which development keeps and does not send
  http://localhost:3000/docs       API reference`

function buildProgram(launcher: Launcher | undefined): Command {
  const program = new Command('signalbox')
    .description('Signed webhooks, identity and realtime for a platform.')
    .version(VERSION)
    .addHelpText('after', WAYS_ON)
    .showHelpAfterError()
    .exitOverride()
  addServeCommand(program, launcher)
  addMigrateCommand(program)
  addDoctorCommand(program)
  addCatalogueCommands(program)
  addAdminCommands(program)
  for (const add of [addUserCommands, addAccountCommands, addInviteCommands, addClientCommands, addImportCommands])
    add(program)
  addOauthCommands(program)
  addSecretsCommands(program)
  addEventLogCommands(program)
  addCellCommands(program)
  addLedgerCommands(program)
  addListenCommand(program)
  addTriggerCommand(program)
  addVerifyCommand(program)
  addReplayCommand(program)
  return program
}
