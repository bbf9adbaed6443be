import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'

test('the limit of open files is that of the process, and the need that of the settings', async () => {
  const script = `
    const { findOpenFiles } = await import(${JSON.stringify(new URL('./open-files.ts', import.meta.url).href)})
    const pools = { databasePoolSize: 10, databaseReadPoolSize: 5, databaseWorkerPoolSize: 5 }
    console.log(JSON.stringify(findOpenFiles({ httpMaxConnections: 2_000, webhookConcurrency: 256, ...pools })))`
  const child = spawn('sh', ['-c', 'ulimit -n 96 && exec "$0" --input-type=module -e "$1"', process.execPath, script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  expect(JSON.parse(await text(child.stdout))).toEqual({ limit: 96, needed: 2_000 + 1_024 + 20 + 64 })
})
