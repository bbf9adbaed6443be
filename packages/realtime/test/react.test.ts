import { Window } from 'happy-dom'
import { act, createElement } from 'react'
import { createRoot, type Root } from 'react-dom/client'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ChannelName, ChannelState, RealtimeMessage } from '../src/channel.ts'
import { type ClientEventLine, defineClientEvents } from '../src/client-events.ts'
import type { Member } from '../src/presence.ts'
import { RealtimeProvider, useChannel, useClientEvent, useEvent, useMissed, usePresence } from '../src/react.ts'
import type { JoinedChannel, Realtime } from '../src/realtime.ts'

const NAME: ChannelName = 'private-account-a'

let root: Root
let container: { textContent: string }

beforeEach(() => {
  const window = new Window()
  Object.assign(globalThis, { window, document: window.document, IS_REACT_ACT_ENVIRONMENT: true })
  const element = window.document.createElement('div')
  container = element
  root = createRoot(element as unknown as Element)
})
afterEach(async () => {
  await act(async () => root.unmount())
  Reflect.deleteProperty(globalThis, 'window')
  Reflect.deleteProperty(globalThis, 'document')
})

/** A connection whose channels are in the state that the test says, and that counts who has joined. */
function buildConnection() {
  let state: ChannelState = { kind: 'connecting' }
  const listeners = new Set<() => void>()
  const missed = new Map<ChannelName, Set<() => void>>()
  const handlers = new Map<string, Set<(message: never) => void>>()
  const users = new Map<string, number>()
  const clientHandlers = new Map<string, (data: never, sender: object) => void>()
  const sent: unknown[] = []
  let members: readonly Member[] = []
  const clientLine: ClientEventLine = {
    onClient: (_events, name, handler) => {
      clientHandlers.set(name, handler as (data: never, sender: object) => void)
      return () => clientHandlers.delete(name)
    },
    send: (_events, name, data) => sent.push([name, data]) > 0,
  }
  const realtime: Realtime = {
    joinPresence: (name) => {
      users.set(name, (users.get(name) ?? 0) + 1)
      const listen = (listener: () => void) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      }
      return {
        ...{ ...clientLine, name, read: () => state, onState: listen, onMembers: listen, members: () => members },
        leave: () => void users.set(name, (users.get(name) ?? 0) - 1),
      }
    },
    join: (name): JoinedChannel => {
      users.set(name, (users.get(name) ?? 0) + 1)
      return {
        ...{ ...clientLine, name, read: () => state },
        onState: (listener) => {
          listeners.add(listener)
          return () => listeners.delete(listener)
        },
        onMissed: (listener) => {
          const own = missed.get(name) ?? new Set()
          missed.set(name, own.add(listener))
          return () => own.delete(listener)
        },
        on: (event, handler) => {
          const key = `${name} ${event}`
          const own = handlers.get(key) ?? new Set()
          handlers.set(key, own.add(handler as (message: never) => void))
          return () => own.delete(handler as (message: never) => void)
        },
        leave: () => void users.set(name, (users.get(name) ?? 0) - 1),
      }
    },
    close: () => {},
  }
  return {
    ...{ realtime, users, sent, clientHandlers },
    show: (next: readonly Member[]) =>
      act(async () => {
        members = next
        for (const listener of [...listeners]) listener()
      }),
    become: (next: ChannelState) =>
      act(async () => {
        state = next
        for (const listener of [...listeners]) listener()
      }),
    miss: (name: ChannelName) =>
      act(async () => {
        for (const listener of [...(missed.get(name) ?? [])]) listener()
      }),
    say: (name: ChannelName, event: string) =>
      act(async () => {
        for (const handler of handlers.get(`${name} ${event}`) ?? []) handler({ id: event } as never)
      }),
  }
}

test('a component shows the state of its channel, and leaves the channel when it goes', async () => {
  const connection = buildConnection()
  const Page = () => {
    const state = useChannel(NAME)
    return createElement('p', null, state.kind === 'denied' ? state.reason : state.kind)
  }
  const { realtime } = connection
  await act(async () => root.render(createElement(RealtimeProvider, { realtime }, createElement(Page))))
  expect(container.textContent).toBe('connecting')
  await connection.become({ kind: 'live' })
  expect(container.textContent).toBe('live')
  await connection.become({ kind: 'denied', reason: 'not yours' })
  expect(container.textContent).toBe('not yours')
  expect(connection.users.get(NAME)).toBe(1)
  await act(async () => root.render(createElement(RealtimeProvider, { realtime })))
  expect(connection.users.get(NAME)).toBe(0)
})

test('a component gets the messages of an event type with its latest handler, of the channel that it names now', async () => {
  const connection = buildConnection()
  const seen: string[] = []
  const Page = ({ name, mark }: { name: ChannelName | null; mark: string }) => {
    useEvent(name, 'contract.update', (message: RealtimeMessage<'contract.update'>) =>
      seen.push(`${mark} ${message.id}`),
    )
    return null
  }
  const { realtime } = connection
  const render = (name: ChannelName | null, mark: string) =>
    act(async () => root.render(createElement(RealtimeProvider, { realtime }, createElement(Page, { name, mark }))))
  await render(NAME, 'first')
  await render(NAME, 'second')
  expect(connection.users.get(NAME)).toBe(1)
  await connection.say(NAME, 'contract.update')
  await connection.say(NAME, 'contract.create')
  expect(seen).toEqual(['second contract.update'])
  await render('private-contract-c', 'third')
  await connection.say(NAME, 'contract.update')
  await connection.say('private-contract-c', 'contract.update')
  expect(seen.slice(1)).toEqual(['third contract.update'])
  await render(null, 'fourth')
  expect([connection.users.get(NAME), connection.users.get('private-contract-c')]).toEqual([0, 0])
})

test('a component hears with its latest handler that messages of its channel were missed', async () => {
  const connection = buildConnection()
  const seen: string[] = []
  const Page = ({ name, mark }: { name: ChannelName | null; mark: string }) => {
    useMissed(name, () => seen.push(mark))
    return null
  }
  const { realtime } = connection
  const render = (name: ChannelName | null, mark: string) =>
    act(async () => root.render(createElement(RealtimeProvider, { realtime }, createElement(Page, { name, mark }))))
  await render(NAME, 'first')
  await render(NAME, 'second')
  await connection.miss(NAME)
  expect([seen, connection.users.get(NAME)]).toEqual([['second'], 1])
  await render(null, 'third')
  await connection.miss(NAME)
  expect([seen, connection.users.get(NAME)]).toEqual([['second'], 0])
})

test('a component shows who is present, and leaves when it goes', async () => {
  const connection = buildConnection()
  const Page = ({ name }: { name: 'presence-account-a' | null }) => {
    const { state, members } = usePresence(name)
    return createElement('p', null, `${state.kind}: ${members.map((member) => member.name).join()}`)
  }
  const { realtime } = connection
  const render = (name: 'presence-account-a' | null) =>
    act(async () => root.render(createElement(RealtimeProvider, { realtime }, createElement(Page, { name }))))
  await render('presence-account-a')
  await connection.become({ kind: 'live' })
  await connection.show([{ id: 'u', name: 'Ann', since: '2026-01-01T00:00:00.000Z' }])
  expect(container.textContent).toBe('live: Ann')
  await render(null)
  expect([container.textContent, connection.users.get('presence-account-a')]).toEqual(['connecting: ', 0])
})

test('a component sends client events and gets those of others, typed, on either kind of channel', async () => {
  const connection = buildConnection()
  const events = defineClientEvents<{ 'client-typing': { field: string } }>()
  const seen: string[] = []
  let send: ((data: { field: string }) => boolean) | undefined
  const Page = ({ name, mark }: { name: ChannelName | 'presence-account-a' | null; mark: string }) => {
    send = useClientEvent(name, {
      ...{ events, name: 'client-typing' },
      handler: ({ field }, { user }) => seen.push(`${mark} ${field} ${user}`),
    })
    return null
  }
  const { realtime } = connection
  const render = (name: ChannelName | 'presence-account-a' | null, mark: string) =>
    act(async () => root.render(createElement(RealtimeProvider, { realtime }, createElement(Page, { name, mark }))))
  const arrive = () => connection.clientHandlers.get('client-typing')?.({ field: 'name' } as never, { user: 'ann' })
  await render('presence-account-a', 'first')
  await render('presence-account-a', 'second')
  arrive()
  expect(send?.({ field: 'name' })).toBe(true)
  await render(NAME, 'third')
  arrive()
  expect(seen).toEqual(['second name ann', 'third name ann'])
  expect(connection.sent).toEqual([['client-typing', { field: 'name' }]])
  expect([connection.users.get('presence-account-a'), connection.users.get(NAME)]).toEqual([0, 1])
  await render(null, 'fourth')
  expect([send?.({ field: 'name' }), connection.users.get(NAME)]).toEqual([false, 0])
})
