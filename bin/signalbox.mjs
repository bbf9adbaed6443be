#!/usr/bin/env node
/** The `signalbox` command: `node bin/signalbox.mjs serve --demo`. Installs what is missing, then runs src/main.ts on the pinned Node. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildEnvironment, exitWith, prepareNode, projectRoot } from './bootstrap.mjs'
import { runToEnd } from './run-to-end.mjs'

await exitWith(async () => {
  const node = await prepareNode({ root: projectRoot, needsDev: false })
  const main = join(projectRoot, 'src', 'main.ts')
  const args = [...readNodeArguments(), main, ...process.argv.slice(2)]
  return runToEnd(node, args, { env: buildEnvironment(), tie: 'pipe', isLast: true })
})

/**
 * A small young generation, and an old one that grows by a quarter between collections: a process takes 163 MB instead of 222
 * when idle, 215 MB instead of 400 under a backlog, at the same rate (`npm run bench -- table --only backlog`).
 */
function readNodeArguments() {
  return JSON.parse(readFileSync(new URL('node-arguments.json', import.meta.url), 'utf8'))
}
