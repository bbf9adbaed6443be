import type { ChannelShare, Transition } from '../application/channel-registry.ts'
import { announce, deliver } from '../application/fan-out.ts'
import type { Application, FleetMessage, RealtimeContext, Relay } from '../application/state.ts'
import { permitHere, terminateHere, withdrawHere } from '../application/user-access.ts'
import { parseChannelName } from '../frame/channel-name.ts'
import type { Fleet } from './fleet.ts'

/** Tracks the subscriptions of other processes, and announces its own. */
export interface FleetSync extends Relay {
  onMessage(process: string, message: FleetMessage): void
  onPeer(process: string): void
  onPeerGone(process: string): void
  /** Asks for the state of a process of which messages are lost. */
  onLost(process: string): void
  /** Sends the messages that could not be sent before. */
  onBeat(): void
}

/** Builds the sync. `context` and `fleet` are read lazily, because they are built with it. */
export function buildFleetSync(deps: { context: () => RealtimeContext; fleet: () => Fleet }): FleetSync {
  const send = (message: FleetMessage) => deps.fleet().send(message)
  const sendQuietly = (message: FleetMessage) =>
    void send(message).catch((error: unknown) =>
      deps
        .context()
        .logger.warn(
          { err: error, kind: message.kind },
          'realtime message not sent: see docs/operations.md, realtime processes',
        ),
    )

  const changes = buildShareChanges(send)

  function observeCount({ app, registry }: Application, channel: string): void {
    const count = registry.countConnections(channel)
    deps.context().observe({ app: app.id, kind: 'subscription_count', channel, count })
  }

  function sendState(to: string): void {
    const context = deps.context()
    for (const { app, registry, cache } of context.applications.values())
      sendQuietly({
        kind: 'state',
        to,
        app: app.id,
        shares: registry.shares(),
        cache: cache.entries(context.clock.now()),
      })
  }

  function takeShares(application: Application, process: string, shares: readonly ChannelShare[]): void {
    const transitions: Transition[] = []
    for (const share of shares) {
      const channel = parseChannelName(share.c)
      if (!channel) continue
      transitions.push(...application.registry.setShare(process, channel, share))
      observeCount(application, share.c)
    }
    announce(deps.context(), application, { transitions })
  }

  const ask = (to: string) => sendQuietly({ kind: 'ask', to })

  function onApplicationMessage(process: string, message: Extract<FleetMessage, { app: string }>): void {
    const context = deps.context()
    const application = context.applications.get(message.app)
    if (!application) return
    switch (message.kind) {
      case 'state': {
        if (message.to !== deps.fleet().id) return
        for (const [channel, event] of message.cache) application.cache.put(channel, event)
        return void takeShares(application, process, completeShares(application, process, message.shares))
      }
      case 'shares':
        return void takeShares(application, process, message.shares)
      case 'publish':
        for (const event of message.events) deliver(context, application, event)
        return
      case 'terminate':
        return void terminateHere(context, application, message.user)
      case 'withdraw':
        return void withdrawHere(context, application, message)
      case 'permit':
        return void permitHere(context, application, message)
    }
  }

  return {
    send,
    markChanged: (application, channel, userId) => {
      observeCount(application, channel)
      if (!deps.fleet().hasPeers()) return
      changes.note(application, channel, userId === undefined ? [] : [userId])
      changes.sendSoon()
    },
    onBeat: changes.sendSoon,
    onMessage: (process, message) => {
      if (message.kind === 'ask') {
        if (message.to === deps.fleet().id) sendState(process)
      } else if ('app' in message) onApplicationMessage(process, message)
    },
    onPeer: ask,
    onLost: ask,
    onPeerGone: (process) => {
      const context = deps.context()
      for (const application of context.applications.values())
        announce(context, application, { transitions: application.registry.dropProcess(process) })
    },
  }
}

/** Collects changes of this process during a statement, and sends totals: a repetition is harmless. */
function buildShareChanges(send: (message: FleetMessage) => Promise<void>) {
  const changed = new Map<Application, Map<string, Set<string>>>()
  let isSending = false

  function note(application: Application, channel: string, userIds: Iterable<string>): void {
    const channels = changed.get(application) ?? new Map<string, Set<string>>()
    changed.set(application, channels)
    const members = channels.get(channel) ?? new Set<string>()
    channels.set(channel, members)
    for (const userId of userIds) members.add(userId)
  }

  async function sendAll(): Promise<void> {
    while (changed.size > 0) {
      const taken = [...changed]
      changed.clear()
      for (const [application, channels] of taken) {
        const shares = [...channels].map(([channel, members]) => application.registry.shareOf(channel, members))
        try {
          await send({ kind: 'shares', app: application.app.id, shares })
        } catch {
          // Sent again with the next change, or when the database answers again.
          for (const [channel, members] of channels) note(application, channel, members)
          return
        }
      }
    }
  }

  function sendSoon(): void {
    if (isSending || changed.size === 0) return
    isSending = true
    // After the messages of this tick: the subscriptions of one page arrive together.
    setImmediate(() => {
      void sendAll().finally(() => {
        isSending = false
      })
    })
  }

  return { note, sendSoon }
}

/** A whole state, with an empty share for everything of this process that it does not name. */
function completeShares(
  { registry }: Application,
  process: string,
  shares: readonly ChannelShare[],
): readonly ChannelShare[] {
  const named = new Map(shares.map((share) => [share.c, share]))
  return registry
    .sharesOf(process)
    .flatMap((known): ChannelShare[] => {
      const share = named.get(known.c)
      named.delete(known.c)
      if (!share) return [{ c: known.c, n: 0 }]
      const present = new Set(share.m?.map(([id]) => id))
      const gone = (known.m ?? [])
        .filter(([id]) => !present.has(id))
        .map(([id]): [string, number, unknown] => [id, 0, null])
      return [{ ...share, m: [...(share.m ?? []), ...gone] }]
    })
    .concat([...named.values()])
}
