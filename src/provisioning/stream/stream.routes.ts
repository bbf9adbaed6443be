import type { Routes } from '../../http/route/route.ts'
import { defineList } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { loadTarget } from '../target/target.ts'
import { StreamRow } from './stream.schema.ts'
import { listStreams, STREAM_FIELDS, toStreamRow } from './stream.store.ts'

/** The streams of a target (docs/contract/provisioning.md#streams). */
export const streamRoutes: Routes<object> = [
  defineList(
    {
      path: '/api/v3/provisioning/target/{id}/stream',
      resource: 'provisioning-target',
      action: 'find-streams',
      summary: 'List the users whose deliveries wait at a provisioning target',
      description:
        'A user at a target is a stream, whose deliveries are made one after the other. The longest due comes first. Streams without waiting deliveries, and those that are attempted at this moment, are left out.',
      params: IdParams,
      data: StreamRow,
      list: STREAM_FIELDS,
    },
    {
      loadParent: ({ db, params }) => loadTarget(db, params.id),
      rows: ({ db, params }) => listStreams(db, params.id),
      toRow: (stream, { now }) => toStreamRow(stream, now),
      message: 'Streams.',
    },
  ),
]
