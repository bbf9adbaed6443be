import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../clock.ts'
import type { Database } from '../postgres/database.ts'
import type { Caller } from './caller.ts'
import type { RequestTrace } from './request-trace.ts'
import type { Changed, Outcome, Route, RouteDeclaration, RouteRequest } from './route.ts'

/** A success to record: by which route, with what outcome, for whom. */
export interface Success {
  route: RouteDeclaration
  outcome: Outcome<unknown>
  request: RouteRequest<unknown, unknown, unknown, unknown>
}

/**
 * What the shell is given by the app. The shell knows no business word: who a token stands for, what an event is and
 * where an audit entry goes are functions here.
 */
export interface Shell {
  db: Database
  clock: Clock
  /** The caller of an `Authorization` header; undefined when there is none or it is not valid. */
  authenticate(authorization: string | undefined): Promise<Caller | undefined>
  /** Writes the events of a change that keeps its own transactions, in the one it names. */
  recordEvents(change: {
    route: RouteDeclaration
    changed: Changed[]
    db: Database
    now: Date
    trace: string | null
  }): Promise<void>
  /** Writes the events and the audit entry of a change, in its transaction (D72). */
  recordChange(success: Success): Promise<void>
  /** Records the event of a read, when somebody subscribes to it (D70). */
  recordRead(success: Success): Promise<void>
  /** Runs when a change was committed: wakes the router. Never throws. */
  afterCommit(): void
  /** Counts a request against its address (D8); throws `rate_limited`. */
  limitAddress(route: Route<never>, request: FastifyRequest, reply: FastifyReply): Promise<void>
  /** Counts a request against its caller (D8); throws `rate_limited`. */
  limitCaller(caller: Caller, reply: FastifyReply): Promise<void>
}

declare module 'fastify' {
  interface FastifyRequest {
    caller?: Caller
    trace?: RequestTrace
    rawBody?: Buffer
  }
  interface FastifyContextConfig {
    route?: RouteDeclaration
  }
}
