import { expect, test } from 'vitest'
import { GuardedFetchError } from '../../../outbound/guarded-fetch.ts'
import { OwnFault } from '../../../outbound/own-fault/own-fault.ts'
import { classifyFault } from './classify-fault.ts'

const STAGES = ['openid token', 'oauth token', 'profile'] as const

test.each(STAGES)('what this process lacks is not the fault of the provider, at the stage %s', (stage) => {
  const own = new GuardedFetchError('EMFILE', 'connect', new OwnFault('EMFILE'))
  const wrapped = new Error('a library says so', { cause: own })
  for (const error of [own, wrapped])
    expect(classifyFault(error, stage)).toEqual({ reason: 'own_fault', detail: 'EMFILE' })
  const theirs = new Error('a library says so', { cause: new GuardedFetchError('ECONNREFUSED', 'connect') })
  expect(classifyFault(theirs, stage)).toEqual({ reason: 'provider_fault', detail: 'ECONNREFUSED' })
})
