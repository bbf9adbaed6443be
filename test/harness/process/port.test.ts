import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { claimPorts, findFreePort, findKeptPort, isFree } from './port.ts'

test('processes whose numbers are two hundred apart share no port: the second takes the next hundred', async () => {
  const claims = [await claimPorts(process.pid + 100), await claimPorts(process.pid + 300)]
  expect(claims[1]?.first).not.toBe(claims[0]?.first)
  for (const { first } of claims) expect(await isFree(first)).toBe(false)
  for (const { release } of claims) await release()
})

test('a port that somebody listens on, or that the browser visits, is given to nobody else', async () => {
  const kept = await findKeptPort()
  const port = await findFreePort()
  const server = createServer().listen(port, '127.0.0.1')
  await once(server, 'listening')
  const later: number[] = []
  while (later.length < 200) later.push(await findFreePort())
  await new Promise((resolve) => server.close(resolve))
  expect(later.filter((other) => other === port || other === kept)).toEqual([])
  expect(await findKeptPort()).toBe(kept)
})
