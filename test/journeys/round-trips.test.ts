import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventNameOf, isChange, type RouteDeclaration } from '../../src/http/route.ts'
import type { ContractWorld } from '../contract/contract-world.ts'
import { measureHeld } from '../harness/held-caller.ts'
import {
  FORMS,
  findRouteOf,
  type MakeRequest,
  prepareRequest,
  REQUESTS,
  ROUTES,
  startRequestWorld,
} from './route-requests.ts'

/** Statements and round trips of one successful request, `begin` and `commit` included. */
type Cost = readonly [statements: number, roundTrips: number]

/** A step of a request, and what it costs. */
type Step = readonly [what: string, ...Cost]

const READ: Step = ['reads', 1, 1]

/** Every change: the first round trip locks and reads what decides, the second one writes and records. */
const CHANGE: Step = ['begin and one statement; one that writes, records and answers, and commit', 4, 2]

/** The limit of sign-in and refresh: what it counts must outlive the request, whatever comes of that. */
const STRICT_LIMIT: Step = ['counts against the strict limit, which no rollback may undo', 1, 1]

/** A publication without a key: its statement is shared with those of concurrent requests, and is its own transaction. */
const PUBLICATION: Step = ['one statement', 1, 1]

/** Requests that are neither one read nor one change: each with all its steps. */
const STEPS: Record<string, readonly Step[]> = {
  'login.local': [
    STRICT_LIMIT,
    ['counts the attempt as failed, before its password is looked at: begin, lock, count, commit', 4, 2],
    CHANGE,
  ],
  'session.refresh': [STRICT_LIMIT, CHANGE],
  'webhook.update with a URL': [['reads the URL: the name service is asked about another one only', 1, 1], CHANGE],
  'event.publish without a key': [PUBLICATION],
  'event.publish for an account without a key': [PUBLICATION],
}

let world: ContractWorld
beforeAll(async () => {
  world = await startRequestWorld()
})
afterAll(() => world[Symbol.asyncDispose]())

/** Sends one request to a route and measures it. */
async function measure(route: RouteDeclaration, make: MakeRequest | undefined, more = '') {
  const { send, caller } = await prepareRequest(route, make, more)
  return measureHeld(world.app, caller, send)
}

/** Checks the cost of one request: a read, a change, or all the steps of a request that does more. */
async function checkCost(name: string, route: RouteDeclaration, make: MakeRequest | undefined): Promise<void> {
  const steps = STEPS[name] ?? [isChange(route) ? CHANGE : READ]
  const { traffic, texts } = await measure(route, make)
  const sum = (pick: (step: Step) => number) => steps.reduce((total, step) => total + pick(step), 0)
  const expected = { statements: sum((step) => step[1]), roundTrips: sum((step) => step[2]) }
  expect(traffic, [...steps.map(([what]) => what), ...texts].join('\n')).toEqual(expected)
}

it('every route of the tree has its request here, and nothing else has', () => {
  expect(Object.keys(REQUESTS)).toEqual(ROUTES.map(eventNameOf))
})

it.each(ROUTES.map((route) => [eventNameOf(route), route] as const))('%s costs what its steps cost', (event, route) =>
  checkCost(event, route, REQUESTS[event]),
)

it.each(Object.entries(FORMS))('the form %s costs no more than its steps', (form, make) =>
  checkCost(form, findRouteOf(form), make),
)

const LISTS = ROUTES.filter(({ list }) => list)

it.each(LISTS.map((route) => [eventNameOf(route), route] as const))(
  '%s counts its rows with one statement more',
  async (event, route) => {
    const { traffic, texts } = await measure(route, REQUESTS[event], '?count=true')
    expect(traffic, texts.join('\n')).toEqual({ statements: 2, roundTrips: 2 })
  },
)

it('no transaction has more than four statements in two round trips', () => {
  const steps = [READ, CHANGE, ...Object.values(STEPS).flat()]
  expect(steps.filter(([, statements, roundTrips]) => statements > 4 || roundTrips > 2)).toEqual([])
})

it('each request with steps of its own is measured', () => {
  const measured = [...Object.keys(REQUESTS), ...Object.keys(FORMS)]
  expect(Object.keys(STEPS).filter((form) => !measured.includes(form))).toEqual([])
})
