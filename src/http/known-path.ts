import type { FastifyInstance } from 'fastify'
import { Problem } from './problem.ts'
import { findTargetFault, toOriginForm } from './request-target.ts'

/** The methods of each path, to distinguish 405 from 404. */
export interface KnownPaths {
  /**
   * The problem of a request that no route serves: 405 `method_not_allowed` with `Allow`, or 404 `not_found`; 400 for a
   * target that is no path.
   */
  buildProblem(target: string): Problem
}

/** The 404 of a path that does not exist, and of one that is hidden from the caller. */
export function buildPathProblem(): Problem {
  return new Problem('not_found', 'There is nothing at this path. The API reference is at /docs.')
}

/** Collects the paths of all routes that are mounted on `server` from now on. */
export function collectPaths(server: FastifyInstance): KnownPaths {
  const routes: { method: string; url: string }[] = []
  server.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) routes.push({ method: one, url })
  })
  let known: { method: string; pattern: RegExp }[] = []
  /** All routes with their patterns, built at the first request that none serves: a twentieth of the work to build an app. */
  const listKnown = () => {
    if (known.length < routes.length) known = routes.map(({ method, url }) => ({ method, pattern: buildPattern(url) }))
    return known
  }
  return {
    buildProblem: (target) => {
      const fault = findTargetFault(target)
      if (fault !== undefined) return new Problem('malformed_request', fault)
      const path = readPath(target)
      const matching = listKnown().filter(({ pattern }) => pattern.test(path))
      const methods = [...new Set(matching.map(({ method }) => method))]
      if (methods.length === 0) return buildPathProblem()
      const allow = methods.join(', ')
      return new Problem('method_not_allowed', `This path takes ${allow}.`, { headers: { allow } })
    },
  }
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
