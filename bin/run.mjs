#!/usr/bin/env node
/** Runs a program of this project on the pinned Node: `node bin/run.mjs node_modules/vitest/vitest.mjs run`. Installs what is missing first. */
import { join } from 'node:path'
import { exitWith, prepareNode, projectRoot, runToEnd } from './bootstrap.mjs'

await exitWith(async () => {
  const node = await prepareNode({ root: projectRoot, needsDev: true })
  return runToEnd(node, process.argv.slice(2), { env: buildEnvironment() })
})

/** With a cache of the compiled sources each process of a test run takes a second of CPU less. */
function buildEnvironment() {
  return { NODE_COMPILE_CACHE: join(projectRoot, 'node_modules', '.cache', 'node-compile'), ...process.env }
}
