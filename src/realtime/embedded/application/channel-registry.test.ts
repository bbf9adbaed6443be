import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseChannelName } from '../frame/channel-name.ts'
import { buildChannelRegistry, type Transition } from './channel-registry.ts'

const presence = parseChannelName('presence-a')!
const open = parseChannelName('open')!
const kinds = (transitions: readonly Transition[]) => transitions.map(({ kind }) => kind)

describe('a registry', () => {
  test('reports the first and the last subscription of a channel, over all processes', () => {
    const registry = buildChannelRegistry<string>()
    expect(kinds(registry.join(open, 's1'))).toEqual(['occupied'])
    expect(kinds(registry.join(open, 's2'))).toEqual([])
    expect(kinds(registry.setShare('p', open, { c: 'open', n: 3 }))).toEqual([])
    expect(registry.countConnections('open')).toBe(5)
    expect(kinds([...registry.leave('open', 's1'), ...registry.leave('open', 's2')])).toEqual([])
    expect(kinds(registry.dropProcess('p'))).toEqual(['vacated'])
    expect(registry.list()).toEqual([])
    expect(kinds(registry.leave('open', 's1'))).toEqual([])
  })

  test('reports a member who comes once and leaves once, whatever number of connections and processes it has', () => {
    const registry = buildChannelRegistry<string>()
    const member = { id: '__proto__', info: { n: 1 } }
    expect(kinds(registry.join(presence, 's1', member))).toEqual(['occupied', 'member_added'])
    expect(kinds(registry.join(presence, 's2', member))).toEqual([])
    expect(kinds(registry.setShare('p', presence, { c: 'presence-a', n: 1, m: [['__proto__', 1, null]] }))).toEqual([])
    expect(kinds([...registry.leave('presence-a', 's1'), ...registry.leave('presence-a', 's2')])).toEqual([])
    expect(registry.membersOf('presence-a')).toEqual([member])
    expect(kinds(registry.dropProcess('p'))).toEqual(['member_removed', 'vacated'])
  })

  test('gives shares that lead another registry to the same members and counts, in any order of changes', () => {
    const step = fc.record({
      socket: fc.nat(5),
      channel: fc.constantFrom('presence-a', 'presence-b', 'open'),
      user: fc.constantFrom('u', 'v', '__proto__'),
      isJoin: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const [here, there] = [buildChannelRegistry<number>(), buildChannelRegistry<number>()]
        const present = new Set<string>()
        for (const { socket, channel, user, isJoin } of steps) {
          const name = parseChannelName(channel)!
          const member = name.kind === 'presence' ? { id: user, info: null } : undefined
          const before = here.subscribersOf(channel)?.get(socket)
          if (isJoin && !here.subscribersOf(channel)?.has(socket)) here.join(name, socket, member)
          else if (!isJoin) here.leave(channel, socket)
          const changed = [...new Set([user, ...(before === undefined ? [] : [before])])]
          const share = here.shareOf(channel, name.kind === 'presence' ? changed : [])
          for (const transition of there.setShare('here', name, JSON.parse(JSON.stringify(share)))) {
            const key = `${transition.channel.name} ${'member' in transition ? transition.member.id : 'userId' in transition ? transition.userId : ''}`
            if (transition.kind === 'member_added') expect(present.has(key)).toBe(false)
            if (transition.kind === 'member_added') present.add(key)
            if (transition.kind === 'member_removed') expect(present.delete(key)).toBe(true)
          }
        }
        for (const channel of ['presence-a', 'presence-b', 'open']) {
          expect(there.countConnections(channel)).toBe(here.countConnections(channel))
          expect(
            there
              .membersOf(channel)
              .map(({ id }) => id)
              .sort(),
          ).toEqual(
            here
              .membersOf(channel)
              .map(({ id }) => id)
              .sort(),
          )
        }
        expect(
          there
            .list()
            .map(({ name }) => name)
            .sort(),
        ).toEqual(
          here
            .list()
            .map(({ name }) => name)
            .sort(),
        )
      }),
    )
  })
})
