import type { RouteBehaviour, RouteDeclaration, RowNeed } from './route-declaration.ts'

type AnyBehaviour = RouteBehaviour<never, never, never, never, RowNeed, never, never>

/** Every member of a declaration, and of a behaviour. A misspelt or removed member would be ignored silently. */
const DECLARED: Record<keyof RouteDeclaration, true> = {
  method: true,
  path: true,
  resource: true,
  action: true,
  accountScope: true,
  cell: true,
  permission: true,
  morePermissions: true,
  access: true,
  readsCaller: true,
  opensAll: true,
  ownAccounts: true,
  fresh: true,
  event: true,
  eventAction: true,
  eventDeprecation: true,
  page: true,
  writes: true,
  status: true,
  also: true,
  redirect: true,
  media: true,
  bare: true,
  hasEntityTag: true,
  rowTag: true,
  bodyLimitBytes: true,
  takesForm: true,
  takesMultipart: true,
  strictRateLimit: true,
  isExpensive: true,
  readsReplica: true,
  needsAdmission: true,
  summary: true,
  description: true,
  params: true,
  query: true,
  body: true,
  data: true,
  list: true,
  problems: true,
  shownOnce: true,
}
const BEHAVED: Record<keyof AnyBehaviour, true> = { prepare: true, row: true, handle: true }
const FOUND: Record<keyof NonNullable<AnyBehaviour['row']>, true> = { find: true, neededBy: true }

/** Throws for a member that no route has, so that the service does not start with it. */
export function checkRouteMembers(
  declaration: Pick<RouteDeclaration, 'method' | 'path' | 'access' | 'writes' | 'readsReplica'>,
  behaviour: { row?: object },
): void {
  const { row = {} } = behaviour
  const names = [...listOthers(declaration, DECLARED), ...listOthers(behaviour, BEHAVED), ...listOthers(row, FOUND)]
  if (declaration.readsReplica) checkReplicaReader(declaration)
  if (names.length === 0) return
  const route = `${declaration.method} ${declaration.path}`
  throw new TypeError(`${route} has ${names.join(', ')}, which no route has; see src/http/route/route-declaration.ts`)
}

/** A replica makes plain reads of callers with a permission: what it lacks must not decide who gets in. */
function checkReplicaReader(declaration: Parameters<typeof checkRouteMembers>[0]): void {
  const { method, path, access = 'permission', writes = false } = declaration
  if (method === 'GET' && !writes && access === 'permission') return
  throw new TypeError(`${method} ${path} may not read a replica: it writes, or needs no permission`)
}

const listOthers = (given: object, known: object) => Object.keys(given).filter((name) => !Object.hasOwn(known, name))
