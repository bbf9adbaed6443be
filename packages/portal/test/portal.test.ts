import { Window } from 'happy-dom'
import { act, createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readLink } from '../src/link.ts'
import { readPortalEvent } from '../src/message.ts'
import { mountPortal, type PortalEvent } from '../src/portal.ts'
import { Portal } from '../src/react.ts'

const SERVICE = 'https://id.example.com'
const LINK = `${SERVICE}/portal?theme=dark#token=sbl_abc`

let window: Window
let container: HTMLElement
let events: PortalEvent[]

beforeEach(() => {
  window = new Window({ settings: { disableIframePageLoading: true } })
  Object.assign(globalThis, { window, document: window.document, IS_REACT_ACT_ENVIRONMENT: true })
  container = window.document.createElement('div') as unknown as HTMLElement
  events = []
})
afterEach(async () => {
  await window.happyDOM.close()
  Reflect.deleteProperty(globalThis, 'window')
  Reflect.deleteProperty(globalThis, 'document')
})

const onEvent = (event: PortalEvent) => void events.push(event)
const frames = () => [...container.querySelectorAll('iframe')]

describe('a link', () => {
  test('is read when it is one of the portal at the service', () => {
    expect(readLink(LINK, SERVICE)).toEqual({ url: LINK, token: 'sbl_abc' })
  })

  test.each([
    'https://evil.example/portal#token=sbl_abc',
    'http://id.example.com/portal#token=sbl_abc',
    `${SERVICE}/other#token=sbl_abc`,
    `${SERVICE}/portal?token=sbl_abc`,
    `${SERVICE}/portal#token=`,
    'javascript:alert(1)//#token=sbl_abc',
    '',
  ])('%j is refused', (text) => {
    expect(() => readLink(text, SERVICE)).toThrow(TypeError)
  })
})

describe('a message', () => {
  test.each([
    [{ type: 'ready' }, { type: 'ready' }],
    [
      { type: 'resize', height: 12.5 },
      { type: 'resize', height: 12.5 },
    ],
    [{ type: 'link-needed' }, { type: 'link-needed' }],
    [
      { type: 'happened', name: 'webhook-created', id: 'a' },
      { type: 'changed', change: 'webhook-created', id: 'a' },
    ],
    [
      { type: 'opened', session: 's', account: 'a', expires_at: '2026-09-11T12:00:00.000Z' },
      { type: 'opened', session: 's', account: 'a', expiresAt: new Date('2026-09-11T12:00:00.000Z') },
    ],
  ])('%j is %j', (data, wanted) => {
    expect(readPortalEvent(data)).toEqual(wanted)
  })

  test.each([
    null,
    'ready',
    {},
    { type: 'resize', height: '1px' },
    { type: 'resize', height: Number.NaN },
    { type: 'happened', name: 'other', id: 'a' },
  ])('%j says nothing', (data) => {
    expect(readPortalEvent(data)).toBeUndefined()
  })
})

describe('a portal', () => {
  test('is a frame with the link, which sends no referrer and may copy', async () => {
    const portal = mountPortal(container, { service: SERVICE, getUrl: () => LINK, onEvent })
    await expect.poll(frames).toHaveLength(1)
    const frame = portal.frame!
    expect([frame.src, frame.title, frame.referrerPolicy, frame.allow]).toEqual([
      LINK,
      'Webhooks',
      'no-referrer',
      'clipboard-write',
    ])
    portal.unmount()
    expect([frames(), portal.frame]).toEqual([[], undefined])
  })

  test('that gets no link, or a link of another origin, says so and can be opened again', async () => {
    const answers = [
      () => Promise.reject(new Error('signed out')),
      () => 'https://evil.example/portal#token=x',
      () => LINK,
    ]
    const portal = mountPortal(container, { service: SERVICE, getUrl: () => answers.shift()!(), onEvent })
    await expect.poll(() => events).toHaveLength(1)
    portal.reload()
    await expect.poll(() => events).toHaveLength(2)
    expect(events).toMatchObject([
      { type: 'error', error: { message: 'signed out' } },
      { type: 'error', error: expect.any(TypeError) },
    ])
    expect(frames()).toEqual([])
    portal.reload()
    await expect.poll(frames).toHaveLength(1)
  })

  test('that is removed while its link is on the way is never shown', async () => {
    const asked = Promise.withResolvers<string>()
    const portal = mountPortal(container, { service: SERVICE, getUrl: () => asked.promise, onEvent })
    portal.unmount()
    asked.resolve(LINK)
    await asked.promise
    await Promise.resolve()
    expect([frames(), events]).toEqual([[], []])
  })
})

test('the component shows one frame for as long as it is there, however often it renders', async () => {
  const root = createRoot(container)
  let asked = 0
  const render = () =>
    act(async () =>
      root.render(
        createElement(Portal, {
          service: SERVICE,
          className: 'hooks',
          getUrl: () => {
            asked += 1
            return LINK
          },
        }),
      ),
    )
  await render()
  await render()
  await expect.poll(frames).toHaveLength(1)
  expect([asked, container.querySelector('.hooks')?.childElementCount]).toEqual([1, 1])
  await act(async () => root.unmount())
  expect(frames()).toEqual([])
})
