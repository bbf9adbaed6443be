import { type AddressInfo, createServer, type Socket } from 'node:net'

/** The behaviour of a faulty server. */
export type FakeBehaviour =
  /** Refuses with this SQLSTATE before authentication. */
  | { kind: 'refuse'; code: string; message: string }
  /** Accepts every client, with this version (`server_version_num`). */
  | { kind: 'version'; number: number }
  /** Accepts the connection and never answers. */
  | { kind: 'silent' }

/** Implements the start of a PostgreSQL connection (protocol v3), for servers that test machines do not have. */
export async function startFakePostgres(behaviour: FakeBehaviour): Promise<AsyncDisposable & { url: string }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    let isOpen = false
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    socket.on('data', () => {
      if (behaviour.kind === 'silent') return
      if (behaviour.kind === 'refuse') return void socket.end(buildRefusal(behaviour))
      socket.write(isOpen ? buildVersionAnswer(behaviour.number) : OPENING)
      isOpen = true
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `postgres://someone:secret@127.0.0.1:${(server.address() as AddressInfo).port}/signalbox`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function message(type: string, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const head = Buffer.alloc(5, type)
  head.writeUInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const text = (value: string) => Buffer.from(`${value}\0`)
const int16 = (value: number) => Buffer.from([value >> 8, value & 0xff])
const int32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

const READY = message('Z', Buffer.from('I'))
const OPENING = Buffer.concat([message('R', int32(0)), READY])

function buildRefusal({ code, message: sentence }: { code: string; message: string }): Buffer {
  const fields = { S: 'FATAL', V: 'FATAL', C: code, M: sentence }
  return message('E', ...Object.entries(fields).map(([key, value]) => text(key + value)), Buffer.from([0]))
}

function buildVersionAnswer(number: number): Buffer {
  const value = Buffer.from(String(number))
  const column = [text('server_version_num'), int32(0), int16(0), int32(25), int16(-1), int32(-1), int16(0)]
  return Buffer.concat([
    message('T', int16(1), ...column),
    message('D', int16(1), int32(value.length), value),
    message('C', text('SHOW')),
    READY,
  ])
}
