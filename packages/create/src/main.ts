#!/usr/bin/env node
import { createInterface } from 'node:readline/promises'
import { CreateError } from './create-project.ts'
import { runCreate } from './run-create.ts'

async function ask(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  try {
    return (await terminal.question(question)).trim()
  } finally {
    terminal.close()
  }
}

try {
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true
  const print = (text: string) => void process.stdout.write(text)
  await runCreate(process.argv.slice(2), { ask: isTerminal ? ask : undefined, print, directory: process.cwd() })
} catch (error) {
  if (!(error instanceof CreateError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
