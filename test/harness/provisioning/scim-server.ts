import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import SCIMMY from 'scimmy'
import SCIMMYRouters from 'scimmy-routers'

/** A user as the service stores it. */
export interface ScimUser {
  id: string
  externalId?: string
  userName: string
  displayName?: string
  active?: boolean
  emails?: { value: string; primary?: boolean }[]
  /** Users of the SCIM service itself. */
  title?: string
  roles?: { value: string }[]
}

/** A SCIM 2.0 service on loopback, by the maintained implementation of the registries. */
export interface ScimServer extends AsyncDisposable {
  port: number
  /** The base of the service. */
  base: string
  token: string
  users: Map<string, ScimUser>
  /** `METHOD /path` of each request, in order, without the query. */
  requests: string[]
  /** The connections over which requests came. */
  connections: Set<unknown>
  /** The raw bodies of requests. */
  bodies: string[]
  /** Answers the next requests with these statuses and does nothing for them. */
  failNext(...statuses: number[]): void
  /** Answers every request of a method with this status and does nothing for it. */
  refusals: Map<string, number>
  /** Answers the next request with 200 and the page of somebody else. */
  answerPageNext(): void
  /** Answers the next request with 201 and this body, and does nothing for it. */
  answerNext(body: string): void
  /** Does what the next request asks and then answers with this status: the answer is lost. */
  loseNextAnswer(): void
}

const TOKEN = 'scim-token-of-a-test'

/** Starts the service. Its resource types are one declaration for the whole process, so one service runs at a time. */
export async function startScimServer(): Promise<ScimServer> {
  const users = new Map<string, ScimUser>()
  const requests: string[] = []
  const connections = new Set<unknown>()
  const bodies: string[] = []
  const failures: (number | 'page' | { body: string })[] = []
  const refusals = new Map<string, number>()
  let isAnswerLost = false
  declareUsers(users)
  const app = express()
  app.use((request, response, next) => {
    requests.push(`${request.method} ${request.path}`)
    connections.add(request.socket)
    const status = failures.shift() ?? refusals.get(request.method)
    if (typeof status === 'object') return void response.status(201).type('application/scim+json').send(status.body)
    if (status === 'page') return void response.send('<p>Sign in to the proxy</p>')
    if (status !== undefined) return void response.status(status).set('retry-after', '120').json({ detail: 'as asked' })
    if (isAnswerLost) {
      isAnswerLost = false
      const send = response.end.bind(response)
      // The work is done; the connection is cut before a byte of the answer.
      response.end = (() => request.socket.destroy()) as unknown as typeof send
    }
    request.on('data', (chunk: Buffer) => bodies.push(chunk.toString()))
    next()
  })
  app.use(
    '/scim',
    new SCIMMYRouters({
      type: 'bearer',
      handler: (request) => {
        if (request.header('authorization') !== `Bearer ${TOKEN}`) throw new Error('The token is wrong.')
        return 'signalbox'
      },
    }),
  )
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    base: `http://127.0.0.1:${port}/scim`,
    token: TOKEN,
    users,
    requests,
    connections,
    bodies,
    refusals,
    failNext: (...statuses) => failures.push(...statuses),
    answerPageNext: () => failures.push('page'),
    answerNext: (body) => failures.push({ body }),
    loseNextAnswer: () => {
      isAnswerLost = true
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

let ids = 0

/** The handlers of users; the service keeps the latest. */
let store = new Map<string, ScimUser>()
let isDeclared = false

function declareUsers(users: Map<string, ScimUser>): void {
  store = users
  if (isDeclared) return
  isDeclared = true
  const findOne = (id: string) => {
    const user = store.get(id)
    if (!user) throw new SCIMMY.Types.Error(404, null as never, `Resource ${id} not found`)
    return user
  }
  SCIMMY.Resources.declare(SCIMMY.Resources.User)
    .ingress(async (resource, data) => {
      const given = data as unknown as ScimUser
      const name = given.userName.toLowerCase()
      const taken = [...store.values()].find((item) => item.userName.toLowerCase() === name && item.id !== resource.id)
      if (taken) throw new SCIMMY.Types.Error(409, 'uniqueness', 'The userName is taken.')
      if (resource.id) findOne(resource.id)
      ids += 1
      const user = { ...JSON.parse(JSON.stringify(given)), id: resource.id ?? `remote-${ids}` } as ScimUser
      store.set(user.id, user)
      return user as never
    })
    .egress(async (resource) => {
      if (resource.id) return findOne(resource.id) as never
      const all = [...store.values()]
      return (resource.filter ? resource.filter.match(all as never) : all) as never
    })
    .degress(async (resource) => {
      findOne(resource.id as string)
      store.delete(resource.id as string)
    })
}
