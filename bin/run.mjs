#!/usr/bin/env node
/** Runs a program of this project on the pinned Node: `node bin/run.mjs node_modules/vitest/vitest.mjs run`. Installs what is missing first. */
import { exitWith, prepareNode, projectRoot, runToEnd } from './bootstrap.mjs'

await exitWith(async () => {
  const node = await prepareNode({ root: projectRoot, needsDev: true })
  return runToEnd(node, process.argv.slice(2))
})
