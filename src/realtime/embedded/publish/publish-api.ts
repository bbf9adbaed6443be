import type { IncomingMessage, ServerResponse } from 'node:http'
import { deliver } from '../application/fan-out.ts'
import type { Application, FleetMessage, RealtimeContext } from '../application/state.ts'
import { terminateHere } from '../application/user-access.ts'
import { type ChannelName, isUserId, parseChannelName } from '../frame/channel-name.ts'
import { type ApiAnswer, decode, findSignatureFault, readBody, readTarget, refuse } from './api-request.ts'
import { type Attribute, type PublishRequest, readAttributes, readBatch, readEvent } from './publish-body.ts'

interface SignedRequest {
  application: Application
  /** The path below `/apps/{id}`, its segments decoded. */
  segments: readonly (string | undefined)[]
  parameters: ReadonlyMap<string, string>
  body: string
}

type Handler = (context: RealtimeContext, request: SignedRequest) => ApiAnswer | Promise<ApiAnswer>

/** The calls by method and path; `*` stands for one segment. */
const CALLS: readonly { method: 'GET' | 'POST'; path: string; handle: Handler }[] = [
  { method: 'POST', path: 'events', handle: publishEvent },
  { method: 'POST', path: 'batch_events', handle: publishBatch },
  { method: 'GET', path: 'channels', handle: listChannels },
  { method: 'GET', path: 'channels/*', handle: describeChannel },
  { method: 'GET', path: 'channels/*/users', handle: listUsers },
  { method: 'POST', path: 'users/*/terminate_connections', handle: terminateUser },
]

/** The routes of the HTTP API. */
export const PUBLISH_ROUTES: readonly string[] = CALLS.map(
  ({ method, path }) => `${method} /apps/{id}/${path.replace('*', '{name}')}`,
)

/** Builds the HTTP API. */
export function buildPublishApi(context: RealtimeContext) {
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const answer = await serve(context, request)
    const isText = typeof answer.body === 'string'
    const body = Buffer.from(isText ? `${answer.body}\n` : JSON.stringify(answer.body))
    response.writeHead(answer.status, {
      'content-type': isText ? 'text/plain; charset=utf-8' : 'application/json',
      'content-length': body.length,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...answer.headers,
    })
    response.end(request.method === 'HEAD' ? undefined : body)
  }
  return { handle, isSigned: (request: IncomingMessage): boolean => !('status' in readSigned(context, request)) }
}

function readSigned(
  context: RealtimeContext,
  request: IncomingMessage,
): (Omit<SignedRequest, 'segments' | 'body'> & { rest: string }) | ApiAnswer {
  const target = readTarget(request.url ?? '')
  if (!target) return refuse(400, 'The query is malformed')
  const { path, parameters } = target
  const method = request.method ?? ''
  const [, id, rest] = /^\/apps\/([^/]+)\/(.+)$/.exec(path) ?? []
  const application = context.applications.get(id ?? '')
  if (!application || rest === undefined) return refuse(404, 'No such application')
  const fault = findSignatureFault(application.app, { method, path, parameters }, context.clock.now())
  return fault ?? { application, parameters, rest }
}

async function serve(context: RealtimeContext, request: IncomingMessage): Promise<ApiAnswer> {
  const signed = readSigned(context, request)
  if ('status' in signed) return signed
  const { application, parameters, rest } = signed
  const segments = rest.split('/').map(decode)
  const known = CALLS.filter((call) => matches(call.path, segments))
  const call = known.find((item) => item.method === request.method)
  if (!call && known.length > 0)
    return refuse(405, 'Method not allowed', { allow: known.map((item) => item.method).join(', ') })
  if (!call) return refuse(404, 'No such path')
  const body = await readBody(request, parameters)
  if (!Buffer.isBuffer(body)) return body
  return call.handle(context, { application, segments, parameters, body: body.toString() })
}

function matches(pattern: string, segments: readonly (string | undefined)[]): boolean {
  const parts = pattern.split('/')
  return parts.length === segments.length && parts.every((part, index) => part === '*' || part === segments[index])
}

async function publishEvent(context: RealtimeContext, { application, body }: SignedRequest): Promise<ApiAnswer> {
  const request = readEvent(body, context.limits.eventBytes)
  if ('status' in request) return request
  const refused = await publish(context, application, [request])
  if (refused) return refused
  if (request.info.length === 0) return { status: 200, body: {} }
  // Without a prototype, so that a channel may be called __proto__.
  const channels: Record<string, object> = Object.create(null)
  for (const name of request.event.channels) {
    const channel = parseChannelName(name)
    if (channel) channels[name] = describe(context, application, { channel, info: request.info })
  }
  return { status: 200, body: { channels } }
}

async function publishBatch(context: RealtimeContext, { application, body }: SignedRequest): Promise<ApiAnswer> {
  const requests = readBatch(body, context.limits.eventBytes)
  if (!Array.isArray(requests)) return requests
  const refused = await publish(context, application, requests)
  if (refused) return refused
  if (requests.every(({ info }) => info.length === 0)) return { status: 200, body: {} }
  const batch = requests.map(({ event, info }) => {
    const channel = parseChannelName(event.channels[0])
    return channel ? describe(context, application, { channel, info }) : {}
  })
  return { status: 200, body: { batch } }
}

/** Passes a message to the other processes. Returns the refusal when they cannot be reached. */
async function pass({ relay, logger }: RealtimeContext, message: FleetMessage): Promise<ApiAnswer | undefined> {
  try {
    await relay.send(message)
    return undefined
  } catch (error) {
    logger.warn(
      { err: error, kind: message.kind },
      'realtime publish refused: see docs/operations.md, realtime processes',
    )
    return refuse(503, 'The other processes of the server cannot be reached', { 'retry-after': '1' })
  }
}

/** Passes events to the other processes first: if that fails, a repetition makes no duplicates. */
async function publish(
  context: RealtimeContext,
  application: Application,
  requests: readonly PublishRequest[],
): Promise<ApiAnswer | undefined> {
  const events = requests.map(({ event }) => event)
  const refused = await pass(context, { kind: 'publish', app: application.app.id, events })
  if (refused) return refused
  for (const event of events) deliver(context, application, event)
  return undefined
}

function listChannels(context: RealtimeContext, { application, parameters }: SignedRequest): ApiAnswer {
  const info = readAttributes(parameters.get('info') ?? '')
  if (!info || info.includes('cache')) return refuse(400, 'info must list some of user_count, subscription_count')
  const prefix = parameters.get('filter_by_prefix') ?? ''
  if (info.includes('user_count') && !prefix.startsWith('presence-'))
    return refuse(400, 'info=user_count needs a filter_by_prefix that begins with presence-')
  const channels: Record<string, object> = Object.create(null)
  for (const channel of application.registry.list())
    if (channel.kind !== 'user' && channel.name.startsWith(prefix))
      channels[channel.name] = describe(context, application, { channel, info })
  return { status: 200, body: { channels } }
}

function describeChannel(context: RealtimeContext, { application, segments, parameters }: SignedRequest): ApiAnswer {
  const channel = parseChannelName(segments[1])
  if (!channel || channel.kind === 'user') return refuse(400, 'The channel name is invalid')
  const info = readAttributes(parameters.get('info') ?? '')
  if (!info) return refuse(400, 'info must list some of user_count, subscription_count, cache')
  if (info.includes('user_count') && channel.kind !== 'presence')
    return refuse(400, 'Only presence channels have a user_count')
  if (info.includes('cache') && !channel.isCache) return refuse(400, 'Only cache channels have a cache')
  const occupied = application.registry.countConnections(channel.name) > 0
  return { status: 200, body: { occupied, ...describe(context, application, { channel, info }) } }
}

function describe(
  context: RealtimeContext,
  { registry, cache }: Application,
  { channel, info }: { channel: ChannelName; info: readonly Attribute[] },
): object {
  const cached = info.includes('cache') ? cache.find(channel.name, context.clock.now()) : undefined
  return {
    ...(info.includes('user_count') &&
      channel.kind === 'presence' && { user_count: registry.countMembers(channel.name) }),
    ...(info.includes('subscription_count') && { subscription_count: registry.countConnections(channel.name) }),
    ...(cached && {
      cache: { data: cached.data, ttl: Math.ceil((cached.expiresAtMs - context.clock.now()) / 1000) },
    }),
  }
}

function listUsers(_context: RealtimeContext, { application, segments }: SignedRequest): ApiAnswer {
  const channel = parseChannelName(segments[1])
  if (channel?.kind !== 'presence') return refuse(400, 'Only presence channels have users')
  const users = application.registry.membersOf(channel.name).map(({ id }) => ({ id }))
  return { status: 200, body: { users } }
}

async function terminateUser(context: RealtimeContext, { application, segments }: SignedRequest): Promise<ApiAnswer> {
  const user = segments[1]
  if (!isUserId(user)) return refuse(400, 'The user id is invalid')
  const refused = await pass(context, { kind: 'terminate', app: application.app.id, user })
  terminateHere(context, application, user)
  return refused ?? { status: 200, body: {} }
}
