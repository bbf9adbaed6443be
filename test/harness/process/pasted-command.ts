import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { buildCleanEnvironment } from './process.ts'

const run = promisify(execFile)

/**
 * Runs a printed curl command in a shell in `cwd`, and returns the text of the answer. On a machine without curl, sends the
 * same request by fetch.
 */
export async function runPasted(command: string, cwd: string): Promise<string> {
  if (await hasCurl()) {
    const { stdout } = await run('/bin/sh', ['-c', command], { cwd, env: buildCleanEnvironment(process.env) })
    return stdout
  }
  const url = /https?:\/\/\S+/.exec(command)?.[0] ?? ''
  const method = /-X (\w+)/.exec(command)?.[1] ?? 'GET'
  const body = /-d '([^']*)'/.exec(command)?.[1]
  const headers: Record<string, string> = {}
  for (const [, single, double] of command.matchAll(/-H (?:'([^']*)'|"((?:[^"])*)")/g)) {
    const [name = '', value = ''] = (single ?? double ?? '').split(/: (.*)/)
    const file = /\$\(cat '([^']+)'\)/.exec(value)
    headers[name] = file ? value.replace(file[0], (await readFile(resolve(cwd, file[1]!), 'utf8')).trim()) : value
  }
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body }) })
  return response.text()
}

async function hasCurl(): Promise<boolean> {
  return run('curl', ['--version']).then(
    () => true,
    () => false,
  )
}
