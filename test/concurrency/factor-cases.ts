import type { TestCall } from '../harness/app/app.ts'
import type { FactorRequests } from '../harness/browser/factor-requests.ts'
import { type Calls, EACH, onceElse, type Rule } from './parallel-case.ts'

/** The cases of second factors. An answer to a challenge, a code and a signature are good once. */
export function buildFactorCases(
  factors: FactorRequests,
  anonymous: () => TestCall,
): Record<string, [Rule, () => Promise<Calls>]> {
  return {
    'login.factor': [onceElse(401), async () => ({ body: await factors.step(), call: anonymous() })],
    'totp-factor.create': [EACH, async () => ({ call: (await factors.signIn()).call })],
    'totp-factor.confirm': [onceElse(409), factors.confirmation],
    'totp-factor.delete': [onceElse(404), async () => ({ call: (await factors.withApp()).call })],
    'recovery-code.renew': [EACH, async () => ({ call: (await factors.withApp()).call })],
    'session.step-up': [onceElse(422), factors.stepUp],
    'passkey.begin': [EACH, async () => ({ call: (await factors.signIn()).call, events: 0 })],
    'passkey.create': [onceElse(422), factors.registration],
    'passkey.delete': [
      onceElse(404),
      async () => {
        const { call, passkey } = await factors.withPasskey()
        return { call, id: passkey }
      },
    ],
    'login.passkey-options': [EACH, async () => ({ call: anonymous(), events: 0 })],
    'login.passkey': [onceElse(401), async () => ({ body: await factors.passkeyLogin(), call: anonymous() })],
    'login.factor-options': [
      EACH,
      async () => {
        const challenge = await factors.openStep(await factors.withPasskey())
        return { body: { challenge }, call: anonymous(), events: 0 }
      },
    ],
    'session.step-up-options': [EACH, async () => ({ call: (await factors.withPasskey()).call, events: 0 })],
    'user.remove-factors': [EACH, async () => ({ id: (await factors.withApp()).id })],
  }
}
