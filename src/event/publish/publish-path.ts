import { commitPrepared, performChange, prepare, type Served } from '../../http/pipeline/perform.ts'
import { hasCells } from '../../http/pipeline/place.ts'
import { type Answer, buildAnswer } from '../../http/route/answer.ts'
import { readIdempotencyKey } from '../../http/route/idempotency.ts'
import type { Static } from '../../http/shape/schema-type.ts'
import type { PublishBody } from '../occurrence/event.schema.ts'
import { buildAccepted, readPublications } from './publication-form.ts'
import { type PublishDeps, planPublications } from './publish.ts'
import { publishInPlaces } from './publish-places.ts'

/**
 * The path of a publication from the checked request to the answer. Events without a key need no transaction of their
 * own: those of concurrent requests share one statement, which checks the rules, and so one wait for the disk
 * (docs/decisions/0020-routed-where-recorded.md). With a key, or an `Idempotency-Key`, it is an ordinary change.
 */
export async function performPublication(served: Served<PublishDeps>): Promise<Answer> {
  const { places } = served.pipeline
  if (places && (await hasCells(places))) return publishInPlaces(served, { places, perform: performHere })
  return performHere(served)
}

async function performHere(served: Served<PublishDeps>): Promise<Answer> {
  const { pipeline, route, deps, context, reply, request } = served
  if (readIdempotencyKey(request, route)) return performChange(served)
  await prepare(served)
  const { scope, now, trace } = context
  const body = context.body as Static<typeof PublishBody>
  const planned = planPublications(deps, { ...readPublications(body), scope, now, trace })
  if (!planned) return commitPrepared(served, undefined)
  const outcome = buildAccepted(planned.ids)
  // An answer that cannot be serialized fails here, before anything is stored.
  const answer = buildAnswer(route, outcome, reply)
  const isRecorded = await planned.record(pipeline.buildAudit({ route, outcome, request: context }))
  if (!isRecorded) throw await planned.explain(context.db)
  return answer
}
