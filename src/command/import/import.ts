import type { Command } from 'commander'
import { collect } from '../option/option.ts'
import type { ImportOptions } from './import-options.ts'
import { PEOPLE_SOURCE_NAMES, type PeopleSourceName } from './people/people-source-name.ts'
import type { PeopleOptions } from './people-command.ts'
import { SOURCE_NAMES, type SourceName } from './source/source.ts'

const UNCHANGED = `
Without --apply nothing is changed: the report says what would be. A run that ended early is resumed by running it again, and
what is there already is left alone. Nothing is changed at the source.`

const OF_WEBHOOKS = `${UNCHANGED} docs/guides/move-from-svix.md has the whole move.

The token of the source is read from SIGNALBOX_IMPORT_TOKEN or --token-file, that of Signalbox from SIGNALBOX_TOKEN or
SIGNALBOX_TOKEN_FILE: never from an argument.

Examples:
  $ signalbox import svix --from https://api.svix.com --events map.json
  $ signalbox import svix --from https://api.svix.com --events map.json --apply
  $ signalbox import convoy --from https://convoy.example.com --only 01HQ... --apply
  $ signalbox import outpost --from http://localhost:3333/api/v1 --json
  $ signalbox import hook0 --from export.json --ignore-filters`

const LABELS: Readonly<Record<PeopleSourceName, string>> = {
  'supabase-auth': 'Supabase Auth',
  keycloak: 'Keycloak',
  logto: 'Logto',
}

/** Adds `signalbox import <source>`: webhooks over the API, people and OAuth clients with the database. */
export function addImportCommands(program: Command): void {
  const command = program.command('import').description('import webhooks, people or OAuth clients of another system')
  for (const source of SOURCE_NAMES) addWebhookSource(command, source)
  for (const source of PEOPLE_SOURCE_NAMES) addPeopleSource(command, source)
}

function addWebhookSource(command: Command, source: SourceName): void {
  command
    .command(source)
    .description('import the webhooks of another system, with their secrets')
    .requiredOption('--from <url or file>', 'the address of its API, or an export file')
    .option('--token-file <file>', 'file with the token of the source (default: SIGNALBOX_IMPORT_TOKEN)')
    .option('--only <id>', 'one application, project or tenant; may be repeated (default: all)', collect)
    .option('--organization <id>', 'the organization of Hook0')
    .option(
      '--events <file>',
      'JSON: event types here by those of the source; null leaves one out, "*" stands for no filter',
    )
    .option('--accounts <file>', 'JSON: ids of accounts here by those of the source (default: new accounts)')
    .option('--leave-out <id>', 'an endpoint that is not to be imported; may be repeated', collect)
    .option('--ignore-filters', 'import endpoints whose filter has no counterpart: they receive more', false)
    .option('--apply', 'import; without it nothing is changed', false)
    .option('--dry-run', 'change nothing, as without --apply', false)
    .option('--json', 'print the report as JSON', false)
    .option('--url <url>', 'the service (default: SIGNALBOX_URL, else http://localhost:3000)')
    .addHelpText('after', OF_WEBHOOKS)
    .action(async (options: ImportOptions) => {
      // Loaded on demand: no other command needs it.
      const { runImportCommand } = await import('./import-command.ts')
      await runImportCommand(source, options)
    })
}

function addPeopleSource(command: Command, source: PeopleSourceName): void {
  command
    .command(source)
    .description(`import the people of ${LABELS[source]} with their passwords, and its OAuth clients`)
    .requiredOption('--from <file or folder>', 'the export, or a folder of its .json files')
    .option('--provider <there=here>', 'the provider here for one of the source; may be repeated', collect)
    .option('--rp-id <host>', 'the host that passkeys of the source are bound to, where the export does not tell')
    .option('--apply', 'import; without it nothing is changed', false)
    .option('--dry-run', 'change nothing, as without --apply', false)
    .option('--json', 'print a line of JSON for each person and client, then one with the counts', false)
    .addHelpText(
      'after',
      `${UNCHANGED} docs/guides/move-from-${source}.md has the whole move. It works on the database of DATABASE_URL, beside a
running service.`,
    )
    .action(async (options: PeopleOptions) => {
      const { runPeopleCommand } = await import('./people-command.ts')
      await runPeopleCommand(source, options)
    })
}
