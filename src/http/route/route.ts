import type {
  BehaviourOrHandle,
  DataOf,
  RequestOf,
  RouteBehaviour,
  RouteDeclaration,
  RouteRequest,
  RowNeed,
  TargetOf,
  UnpreparedOf,
  UnpreparedRequest,
} from './route-declaration.ts'

export type { Changed, Outcome, PageOutcome, RedirectOutcome, RefusalOutcome } from './outcome.ts'
export type {
  AccountScope,
  BehaviourOrHandle,
  RequestFacts,
  RouteDeclaration,
  RouteRequest,
} from './route-declaration.ts'

type AnyUnprepared = UnpreparedRequest<unknown, unknown, unknown>
type AnyRequest = RouteRequest<unknown, unknown, unknown, unknown, unknown>

/** A declaration with its behaviour. The app supplies `Deps`, the dependencies of its operations. */
export interface Route<Deps>
  extends RouteDeclaration,
    RouteBehaviour<Deps, AnyUnprepared, AnyRequest, unknown, RowNeed, unknown, unknown> {}

/** The routes of one feature. */
export type Routes<Deps> = readonly Route<Deps>[]

/** Refuses what is not among `Known`, also where a literal is not checked for excess members, as in a type parameter. */
export type NoOthers<Given, Known> = { [Name in Exclude<keyof Given, keyof Known>]: never }

/** Declares one v3 route, typed by its schemas. */
export function defineRoute<
  Deps,
  const Declaration extends RouteDeclaration,
  Found = undefined,
  const Need extends RowNeed = 'validation',
  Prepared = undefined,
>(
  declaration: Declaration & NoOthers<Declaration, RouteDeclaration>,
  behaviour: BehaviourOrHandle<
    RouteBehaviour<
      Deps,
      UnpreparedOf<Declaration>,
      RequestOf<Declaration, TargetOf<Found, Need>, Prepared>,
      Found,
      Need,
      Prepared,
      DataOf<Declaration>
    >
  >,
): Route<Deps> {
  const steps: object = typeof behaviour === 'function' ? { handle: behaviour } : behaviour
  if (declaration.readsReplica) checkReplicaReader(declaration)
  return { ...declaration, ...steps } as unknown as Route<Deps>
}

/** A replica makes plain reads of callers with a permission: what it lacks must not decide who gets in. */
function checkReplicaReader({ method, path, access = 'permission', writes = false }: RouteDeclaration): void {
  if (method === 'GET' && !writes && access === 'permission') return
  throw new TypeError(`${method} ${path} may not read a replica: it writes, or needs no permission`)
}

/** Whether a request to the route writes, and so runs in a transaction with its event and its audit entry. */
export function isChange(route: Pick<RouteDeclaration, 'method' | 'writes'>): boolean {
  return route.writes ?? route.method !== 'GET'
}

/** `webhook:create`: the declared permission, or resource and action. */
export function permissionOf(route: Pick<RouteDeclaration, 'resource' | 'action' | 'permission'>): string {
  return route.permission ?? `${route.resource}:${route.action}`
}

/** `webhook.create` */
export function eventNameOf(route: Pick<RouteDeclaration, 'resource' | 'action'>): string {
  return `${route.resource}.${route.action}`
}

/** `webhookRotateSecret` */
export function operationIdOf(route: Pick<RouteDeclaration, 'resource' | 'action'>): string {
  return `${route.resource}-${route.action}`.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}
