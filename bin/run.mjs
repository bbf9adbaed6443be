#!/usr/bin/env node
/** Runs a program of this project on the pinned Node: `node bin/run.mjs node_modules/vitest/vitest.mjs run`. Installs what is missing first. */
import { prepareNode } from './bootstrap.mjs'
import { buildEnvironment, exitWith, projectRoot } from './find-node.mjs'
import { runToEnd } from './run-to-end.mjs'

await exitWith(async () => {
  const node = await prepareNode({ root: projectRoot, needsDev: true })
  return runToEnd(node, process.argv.slice(2), { env: buildEnvironment(), tie: 'watchdog', isLast: true })
})
