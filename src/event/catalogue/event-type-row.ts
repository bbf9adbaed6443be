import { wireOf } from '../../http/shape/wire-row.ts'
import { EventTypeRow } from './catalogue.schema.ts'
import { eventType } from './catalogue.store.ts'

/** Maps an event type for the wire. */
export const toEventTypeRow = wireOf(eventType, EventTypeRow)
