#!/usr/bin/env node
/** The `signalbox` command: `node bin/signalbox.mjs serve --demo`. Installs what is missing, then runs src/main.ts on the pinned Node. */
import { join } from 'node:path'
import { exitWith, prepareNode, projectRoot, runToEnd } from './bootstrap.mjs'

await exitWith(async () => {
  const node = await prepareNode({ root: projectRoot, needsDev: false })
  return runToEnd(node, [join(projectRoot, 'src', 'main.ts'), ...process.argv.slice(2)])
})
