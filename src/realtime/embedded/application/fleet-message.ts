/** PostgreSQL limits the payload of a notification to 7,999 bytes. */
const NOTE_LIMIT_BYTES = 7_900

/** The notification of a message: process, number, and the message itself where it is small enough. */
export function writeNote(process: string, number: number, payload: string): string {
  const head = `${process} ${number}`
  const fits = Buffer.byteLength(payload) + head.length + 1 <= NOTE_LIMIT_BYTES
  return fits ? `${head} ${payload}` : head
}

/** A notification, as it arrives. */
export interface FleetNote {
  process: string
  number: number
  /** Undefined when the message is only in the table. */
  payload: string | undefined
}

/** Reads a notification; undefined for a text that is none. */
export function readNote(text: string): FleetNote | undefined {
  const [, process = '', number, payload] = /^([0-9a-f-]{36}) (\d{1,15})(?: ([\s\S]*))?$/.exec(text) ?? []
  return number === undefined ? undefined : { process, number: Number(number), payload }
}
