import { expect, test } from 'vitest'
import { readFactorProof } from './factor-proof.ts'

test('a body holds one proof: a code or a credential', () => {
  const credential = { id: 'aWQ', response: {} } as never
  const oneProof = expect.objectContaining({ errors: [expect.objectContaining({ path: 'code', code: 'one_proof' })] })
  expect(readFactorProof({ code: '123456' })).toEqual({ kind: 'code', code: '123456' })
  expect(() => readFactorProof({})).toThrow(oneProof)
  expect(() => readFactorProof({ code: '123456', credential })).toThrow(oneProof)
})
