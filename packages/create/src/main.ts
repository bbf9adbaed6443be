#!/usr/bin/env node
import { relative } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'
import { CreateError, createProject } from './create-project.ts'
import { TEMPLATES } from './templates.ts'

const NAMES = Object.keys(TEMPLATES)

const USAGE = `npx @signalbox/create <folder> --template <name> [--packages <folder of a release>]

Templates:
${NAMES.map((name) => `  ${name.padEnd(18)}${TEMPLATES[name]?.text}`).join('\n')}
`

/** `npx @signalbox/create`: asks for what the arguments lack, on a terminal alone. */
async function main(args: string[]): Promise<void> {
  const { values, positionals } = readArguments(args)
  if (values.help) {
    process.stdout.write(USAGE)
    return
  }
  if (positionals.length > 1) throw new CreateError(`There is one folder, not "${positionals.join('", "')}".\n\n${USAGE}`)
  const isAsked = process.stdin.isTTY === true && process.stdout.isTTY === true
  if (!isAsked && (positionals[0] === undefined || values.template === undefined))
    throw new CreateError(`Name the folder and the template.\n\n${USAGE}`)
  const template = values.template ?? (await askTemplate())
  const folder = positionals[0] ?? ((await ask(`Folder (my-${template}): `)) || `my-${template}`)
  const root = await createProject({ folder, template, packages: values.packages })
  const place = relative(process.cwd(), root)
  const enter = place === '' ? [] : [`cd ${quote(place.startsWith('..') ? root : place)}`]
  const steps = [...enter, 'npm install', 'cat README.md']
  process.stdout.write(`Made ${TEMPLATES[template]?.text} in ${root}. Next:\n\n${steps.map((step) => `  ${step}\n`).join('')}\n`)
}

function readArguments(args: string[]) {
  const options = { template: { type: 'string' }, packages: { type: 'string' }, help: { type: 'boolean' } } as const
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    throw new CreateError(`${(error as Error).message}\n\n${USAGE}`)
  }
}

async function askTemplate(): Promise<string> {
  const list = NAMES.map((name, index) => `  ${index + 1}  ${name.padEnd(18)}${TEMPLATES[name]?.text}\n`).join('')
  const answer = await ask(`${list}Number or name: `)
  return NAMES[Number(answer) - 1] ?? answer
}

async function ask(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return (await terminal.question(question)).trim()
  } finally {
    terminal.close()
  }
}

/** As a shell takes it. */
function quote(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof CreateError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
