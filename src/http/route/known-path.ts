import type { FastifyInstance } from 'fastify'
import { Problem } from '../problem/problem.ts'
import { findTargetFault, toOriginForm } from '../request/request-target.ts'

/** The methods of each path, to distinguish 405 from 404. */
export interface KnownPaths {
  /** The problem of a request that no route serves: 405 with `Allow`, 404, or 400 for a target that is no path. */
  buildProblem(target: string): Problem
  /**
   * The 405 of a request that a wider route took, because the route of its own path does not have its method: a parameter
   * that takes a static path, a protocol that is mounted with a wildcard. Undefined for every other request.
   */
  findShadowed(request: { method: string; target: string }): Problem | undefined
}

interface KnownRoute {
  method: string
  width: number
  pattern: RegExp
}

/** The 404 of a path that does not exist, and of one that is hidden from the caller. */
export function buildPathProblem(): Problem {
  return new Problem('not_found', 'There is nothing at this path. The API reference is at /docs.')
}

/** Collects the paths of all routes that are mounted on `server` from now on. */
export function collectPaths(server: FastifyInstance): KnownPaths {
  const routes: { method: string; url: string }[] = []
  server.addHook('onRoute', ({ method, url }) => {
    for (const name of [method].flat()) routes.push({ method: name, url })
  })
  let known: KnownRoute[] = []
  /** All routes with their patterns, built at the first request that none serves: a twentieth of the work to build an app. */
  const listKnown = () => {
    if (known.length < routes.length)
      known = routes.map(({ method, url }) => ({ method, width: measureWidth(url), pattern: buildPattern(url) }))
    return known
  }
  /** The methods of the narrowest routes of a path: those without a parameter before those with one, a wildcard last. */
  const listMethods = (target: string, widest: number): string[] => {
    const path = readPath(target)
    const matching = listKnown().filter(({ width, pattern }) => width <= widest && pattern.test(path))
    const narrowest = Math.min(...matching.map(({ width }) => width))
    return [...new Set(matching.filter(({ width }) => width === narrowest).map(({ method }) => method))]
  }
  return {
    findShadowed: ({ method, target }) => {
      const methods = listMethods(target, WILDCARD_WIDTH - 1)
      return methods.length === 0 || methods.includes(method) ? undefined : buildMethodProblem(methods)
    },
    buildProblem: (target) => {
      const fault = findTargetFault(target)
      if (fault !== undefined) return new Problem('malformed_request', fault)
      const methods = listMethods(target, WILDCARD_WIDTH)
      return methods.length === 0 ? buildPathProblem() : buildMethodProblem(methods)
    },
  }
}

/** The 405 of a path that takes these methods. */
export function buildMethodProblem(methods: readonly string[]): Problem {
  const allow = methods.join(', ')
  return new Problem('method_not_allowed', `This path takes ${allow}.`, { headers: { allow } })
}

/** More than any number of parameters. */
const WILDCARD_WIDTH = 100

/** Generality of a route: the number of its parameters, highest for a wildcard. */
function measureWidth(url: string): number {
  return url.includes('*') ? WILDCARD_WIDTH : url.split('/:').length - 1
}

/** A parameter matches one segment, so matching takes linear time. */
function buildPattern(url: string): RegExp {
  const source = url
    .replace(/[.+?^$()[\]\\]/g, '\\$&')
    .replace(/:\w+/g, '[^/]+')
    .replace(/\*/g, '.*')
  return new RegExp(`^${source}$`)
}

/** The path of a request target, decoded as the router does. */
function readPath(target: string): string {
  const [path = '/'] = toOriginForm(target).split('?', 1)
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}
