import type { BareOptions } from '../bare-database.ts'
import { startProgram } from '../child-process.ts'
import { POOL_SIZE } from '../service-process.ts'
import type { LoadedSide } from './stage.ts'
import type { Testbed } from './testbed.ts'

/** Options of `openBareSide`. */
export interface BareSideOptions {
  /** The token of the load's requests, which the bare server does not read. */
  jwt: string
  /** Whether it posts each event to the sink after its commit. */
  delivers: boolean
}

/** Starts the bare server on a database of its own, for the same load as a stage; `stack` ends it. */
export async function openBareSide(
  testbed: Testbed,
  stack: AsyncDisposableStack,
  { jwt, delivers }: BareSideOptions,
): Promise<LoadedSide> {
  const connectionString = await testbed.server.createDatabase('bare', testbed.template)
  stack.defer(() => testbed.server.dropDatabase(connectionString))
  const program = startProgram<BareOptions, string>('bare-server.ts')
  stack.defer(() => program.stop())
  const origin = await program.ask({
    connectionString,
    poolSize: POOL_SIZE,
    keepsIdempotencyKey: false,
    checksBearer: false,
    // Its publish route names no user and no session.
    ...{ userId: '', sessionId: '', secrets: { session: '', handshake: '' } },
    ...(delivers && { deliversTo: testbed.sinkOrigin }),
  })
  return { testbed, origin, jwt, pid: program.pid, connectionString }
}
