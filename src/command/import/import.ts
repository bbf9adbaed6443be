import { type Command, InvalidArgumentError } from 'commander'
import type { ImportOptions } from './import-options.ts'
import { SOURCE_NAMES, type SourceName } from './source/source.ts'

const EXAMPLES = `
Without --apply nothing is changed: the report says what would be. A run that ended early is resumed by running it again, and
what is there already is left alone. Nothing is changed at the source. docs/guides/move-from-svix.md has the whole move.

The token of the source is read from SIGNALBOX_IMPORT_TOKEN or --token-file, that of Signalbox from SIGNALBOX_TOKEN or
SIGNALBOX_TOKEN_FILE: never from an argument.

Examples:
  $ signalbox import svix --from https://api.svix.com --events map.json
  $ signalbox import svix --from https://api.svix.com --events map.json --apply
  $ signalbox import convoy --from https://convoy.example.com --only 01HQ... --apply
  $ signalbox import outpost --from http://localhost:3333/api/v1 --json
  $ signalbox import hook0 --from export.json --ignore-filters`

/** Adds `signalbox import svix | convoy | outpost | hook0`. */
export function addImportCommand(program: Command): void {
  program
    .command('import')
    .argument('<source>', SOURCE_NAMES.join(', '), parseSource)
    .description('import the webhooks of another system, with their secrets')
    .requiredOption('--from <url or file>', 'the address of its API, or an export file')
    .option('--token-file <file>', 'file with the token of the source (default: SIGNALBOX_IMPORT_TOKEN)')
    .option('--only <id>', 'one application, project or tenant; may be repeated (default: all)', collect)
    .option('--organization <id>', 'the organization of Hook0')
    .option('--events <file>', 'JSON: event types here by those of the source; null leaves one out, "*" is no filter')
    .option('--accounts <file>', 'JSON: ids of accounts here by those of the source (default: new accounts)')
    .option('--ignore-filters', 'import endpoints whose filter has no counterpart: they receive more', false)
    .option('--apply', 'import; without it nothing is changed', false)
    .option('--dry-run', 'change nothing, as without --apply', false)
    .option('--json', 'print the report as JSON', false)
    .option('--url <url>', 'the service (default: SIGNALBOX_URL, else http://localhost:3000)')
    .addHelpText('after', EXAMPLES)
    .showHelpAfterError('signalbox import --help lists the options.')
    .action(async (source: SourceName, options: ImportOptions) => {
      // Loaded on demand: no other command needs it.
      const { runImportCommand } = await import('./import-command.ts')
      await runImportCommand(source, options)
    })
}

const collect = (id: string, ids: string[] = []) => [...ids, id]

function parseSource(text: string): SourceName {
  const name = SOURCE_NAMES.find((one) => one === text)
  if (name) return name
  throw new InvalidArgumentError(`It must be one of ${SOURCE_NAMES.join(', ')}.`)
}
