/** Messages that ended, by their result and the minute in which they ended. */
export { readEndedMessages as countEndedMessages } from './message-count.store.ts'
