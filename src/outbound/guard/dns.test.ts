import { createSocket } from 'node:dgram'
import { afterEach, describe, expect, test } from 'vitest'
import { buildSystemLookup } from './dns.ts'
import { buildSystemTxtLookup } from './dns-text.ts'

const TYPE_A = 1
const TYPE_AAAA = 28
const TYPES: Record<number, string> = { [TYPE_A]: 'A', [TYPE_AAAA]: 'AAAA', 16: 'TXT' }
const NXDOMAIN = 3
const SERVFAIL = 2

/** An answer of the name server below: records, or a response code. */
type Zone = (name: string, type: number) => Buffer[] | number

const running: { close(): void }[] = []
afterEach(() => {
  for (const each of running.splice(0)) each.close()
})

/** A name server on loopback (RFC 1035) that records its queries. */
async function startNameServer(zone: Zone) {
  const asked: string[] = []
  const socket = createSocket('udp4')
  running.push(socket)
  socket.on('message', (query, peer) => {
    const labels: string[] = []
    let at = 12
    for (let length = query[at]!; length > 0; length = query[at]!) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length))
      at += 1 + length
    }
    const type = query.readUInt16BE(at + 1)
    const name = labels.join('.').toLowerCase()
    asked.push(`${TYPES[type]} ${name}`)
    const answer = zone(name, type)
    const records = typeof answer === 'number' ? [] : answer
    const head = Buffer.from(query.subarray(0, 12))
    head.writeUInt16BE(0x8180 | (typeof answer === 'number' ? answer : 0), 2)
    head.writeUInt16BE(records.length, 6)
    head.writeUInt32BE(0, 8)
    const body = records.map((data) => {
      const fixed = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, data.length >> 8, data.length & 255])
      return Buffer.concat([fixed, data])
    })
    socket.send(Buffer.concat([head, query.subarray(12, at + 5), ...body]), peer.port, peer.address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const servers = [`127.0.0.1:${socket.address().port}`]
  return { lookup: buildSystemLookup({ servers }), asked, servers }
}

const IPV4 = Buffer.from([93, 184, 215, 14])
const IPV6 = Buffer.from('26064700470000000000000000001111', 'hex')

describe('buildSystemLookup', () => {
  test('queries A and AAAA of an absolute name and returns all addresses', async () => {
    const { lookup, asked } = await startNameServer((_name, type) => [type === TYPE_A ? IPV4 : IPV6])
    expect(await lookup('hooks.example.com.')).toEqual(['93.184.215.14', '2606:4700:4700::1111'])
    expect(asked.sort()).toEqual(['A hooks.example.com', 'AAAA hooks.example.com'])
  })

  test('one family is enough when the query of the other fails', async () => {
    const { lookup } = await startNameServer((name, type) =>
      type === TYPE_AAAA ? (name === 'a.example.com' ? [] : SERVFAIL) : [IPV4],
    )
    expect(await lookup('a.example.com.')).toEqual(['93.184.215.14'])
    expect(await lookup('b.example.com.')).toEqual(['93.184.215.14'])
  })

  test('an absolute name does not use the hosts file or a search domain', async () => {
    const { lookup, asked } = await startNameServer(() => NXDOMAIN)
    await expect(lookup('localhost.')).rejects.toMatchObject({ code: 'ENOTFOUND' })
    await expect(lookup('redis.')).rejects.toMatchObject({ code: 'ENOTFOUND' })
    expect(new Set(asked.map((question) => question.split(' ')[1]))).not.toContain('redis.localdomain')
    expect(
      asked.filter((question) => /^A+ redis\b/.test(question)).every((question) => question.endsWith(' redis')),
    ).toBe(true)
  })

  test('rejects with the code when there is no address', async () => {
    const { lookup } = await startNameServer((name) =>
      name.startsWith('none') ? [] : name.startsWith('dead') ? SERVFAIL : NXDOMAIN,
    )
    await expect(lookup('none.example.com.')).rejects.toMatchObject({ code: 'ENODATA' })
    await expect(lookup('gone.example.com.')).rejects.toMatchObject({ code: 'ENOTFOUND' })
    await expect(lookup('dead.example.com.')).rejects.toMatchObject({ code: 'ESERVFAIL' })
  })

  test('rejects with the fault of one family where the other has no address', async () => {
    const { lookup } = await startNameServer((name, type) =>
      (type === TYPE_A) === name.startsWith('four') ? SERVFAIL : [],
    )
    await expect(lookup('four.example.com.')).rejects.toMatchObject({ code: 'ESERVFAIL' })
    await expect(lookup('six.example.com.')).rejects.toMatchObject({ code: 'ESERVFAIL' })
  })

  test('reads the configured name servers again after a fault of theirs, and not after a name without address', async () => {
    const before = await startNameServer((name) =>
      name.startsWith('dead') ? SERVFAIL : name === 'none' ? [] : NXDOMAIN,
    )
    const after = await startNameServer((_name, type) => (type === TYPE_A ? [IPV4] : []))
    before.servers.splice(0, 1, ...after.servers)
    await expect(before.lookup('gone.')).rejects.toMatchObject({ code: 'ENOTFOUND' })
    await expect(before.lookup('none.')).rejects.toMatchObject({ code: 'ENODATA' })
    await expect(before.lookup('dead.')).rejects.toMatchObject({ code: 'ESERVFAIL' })
    expect(after.asked).toEqual([])
    expect(await before.lookup('dead.')).toEqual(['93.184.215.14'])
  })

  test('concurrent look-ups share an answer; a later one queries again', async () => {
    const { lookup, asked } = await startNameServer((_name, type) => (type === TYPE_A ? [IPV4] : []))
    await Promise.all(Array.from({ length: 20 }, () => lookup('hooks.example.com.')))
    expect(asked).toHaveLength(2)
    await lookup('hooks.example.com.')
    expect(asked).toHaveLength(4)
  })

  test('a name without the root dot uses the name service of the machine', async () => {
    const { lookup, asked } = await startNameServer(() => NXDOMAIN)
    for (const addresses of [await lookup('localhost'), await buildSystemLookup()('localhost')])
      expect(addresses.every((address) => address === '127.0.0.1' || address === '::1')).toBe(true)
    expect(asked).toEqual([])
  })
})

test('text records are whole, of 1024 characters at most, and none without an answer', async () => {
  /** A record of several texts of 255 characters at most (RFC 1035). */
  const record = (text: string) =>
    Buffer.concat((text.match(/.{1,255}/g) ?? []).map((part) => Buffer.from([part.length, ...Buffer.from(part)])))
  const [longest, longer] = ['a'.repeat(1024), 'a'.repeat(1025)]
  const { servers, asked } = await startNameServer((name) =>
    name === 'none.test' ? NXDOMAIN : [record('first=1'), record(name === 'most.test' ? longest : longer)],
  )
  const lookup = buildSystemTxtLookup({ servers })
  expect(await lookup('most.test')).toEqual(['first=1', longest])
  expect(await lookup('more.test')).toEqual(['first=1'])
  expect(await lookup('none.test')).toEqual([])
  expect(asked).toEqual(['TXT most.test', 'TXT more.test', 'TXT none.test'])
})
