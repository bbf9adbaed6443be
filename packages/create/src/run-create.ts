import { relative } from 'node:path'
import { parseArgs } from 'node:util'
import { CreateError, createProject } from './create-project.ts'
import { TEMPLATES } from './templates.ts'

const NAMES = Object.keys(TEMPLATES)

const USAGE = `npx @signalbox/create <folder> --template <name> [--packages <folder of a release>]

Templates:
${NAMES.map((name) => `  ${name.padEnd(18)}${TEMPLATES[name]?.text}`).join('\n')}
`

/** Where the program runs. */
export interface Surroundings {
  /** Asks a person; undefined where there is none at a terminal. */
  ask?: ((question: string) => Promise<string>) | undefined
  print(text: string): void
  /** The current folder. */
  directory: string
}

/** Runs `npx @signalbox/create <args>`: asks for what the arguments lack. Throws a `CreateError` that has the remedy. */
export async function runCreate(args: readonly string[], { ask, print, directory }: Surroundings): Promise<void> {
  const { values, positionals } = readArguments(args)
  if (values.help) return print(USAGE)
  if (positionals.length > 1) throw new CreateError(`Name one folder, not "${positionals.join('", "')}".\n\n${USAGE}`)
  const template = values.template ?? (ask && (await askTemplate(ask)))
  if (template === undefined || (positionals[0] === undefined && !ask))
    throw new CreateError(`Name the folder and the template.\n\n${USAGE}`)
  const folder = positionals[0] ?? ((await ask?.(`Folder (my-${template}): `)) || `my-${template}`)
  const root = await createProject({ folder, template, packages: values.packages, directory })
  const place = relative(directory, root)
  const enter = place === '' ? [] : [`cd ${quote(place.startsWith('..') ? root : place)}`]
  const steps = [...enter, 'npm install', 'cat README.md'].map((step) => `  ${step}\n`)
  print(`Made ${TEMPLATES[template]?.text} in ${root}. Next:\n\n${steps.join('')}\n`)
}

function readArguments(args: readonly string[]) {
  const options = { template: { type: 'string' }, packages: { type: 'string' }, help: { type: 'boolean' } } as const
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    throw new CreateError(`${(error as Error).message}\n\n${USAGE}`)
  }
}

async function askTemplate(ask: (question: string) => Promise<string>): Promise<string> {
  const list = NAMES.map((name, index) => `  ${index + 1}  ${name.padEnd(18)}${TEMPLATES[name]?.text}\n`).join('')
  const answer = await ask(`${list}Number or name: `)
  return NAMES[Number(answer) - 1] ?? answer
}

/** As a shell takes it. */
function quote(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}
