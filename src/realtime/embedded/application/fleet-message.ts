/** PostgreSQL limits the payload of a notification to 7,999 bytes. */
const NOTE_LIMIT_BYTES = 7_900

/** The notification of a message: process, number, and the message itself where it is small enough. */
export function writeNote(whole: FleetNote): string {
  const note = writeText(whole)
  return Buffer.byteLength(note) <= NOTE_LIMIT_BYTES ? note : writeText({ ...whole, payload: undefined })
}

/** A message as text. Pure. */
export function writeText({ process, number, payload, isCarried }: FleetNote): string {
  const head = `${process} ${isCarried ? 'c' : ''}${number}`
  return payload === undefined ? head : `${head} ${payload}`
}

export interface FleetNote {
  process: string
  number: number
  /** Whether it is one of the messages that the bus may carry, which are numbered apart. */
  isCarried: boolean
  /** Undefined when the message is only in the table. */
  payload: string | undefined
}

/** Reads a notification; undefined for a text that is none. */
export function readNote(text: string): FleetNote | undefined {
  const [, process = '', mark, number, payload] = /^([0-9a-f-]{36}) (c?)(\d{1,15})(?: ([\s\S]*))?$/.exec(text) ?? []
  return number === undefined ? undefined : { process, number: Number(number), isCarried: mark === 'c', payload }
}
