#!/usr/bin/env node
/**
 * The `signalbox` command: `node bin/signalbox.mjs start`. In a checkout it installs what is missing and runs src/main.ts; in an
 * installed package it runs the src/main.js that tools/release made of it.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildEnvironment, chooseInstalledNode, exitWith, projectRoot } from './find-node.mjs'
import { runToEnd } from './run-to-end.mjs'

await exitWith(async () => {
  const built = join(projectRoot, 'src', 'main.js')
  const isBuilt = existsSync(built)
  const node = isBuilt ? chooseInstalledNode(projectRoot) : await prepareCheckout()
  const main = isBuilt ? built : join(projectRoot, 'src', 'main.ts')
  const args = [...readNodeArguments(), main, ...process.argv.slice(2)]
  return runToEnd(node, args, { env: buildEnvironment(), tie: 'pipe', isLast: true })
})

async function prepareCheckout() {
  const { prepareNode } = await import('./bootstrap.mjs')
  return prepareNode({ root: projectRoot, needsDev: false })
}

/**
 * A small young generation, and an old one that grows by a quarter between collections: a process takes 163 MB instead of 222
 * when idle, 215 MB instead of 400 under a backlog, at the same rate (`npm run bench -- table --only backlog`).
 */
function readNodeArguments() {
  return JSON.parse(readFileSync(new URL('node-arguments.json', import.meta.url), 'utf8'))
}
