/** Sign-ins, and refused ones, by the minute in which they ended. */
export { REFUSED, readSignIns as countSignIns, SIGN_IN_WAYS } from './sign-in-count.store.ts'
