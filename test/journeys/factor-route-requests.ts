import type { TestCall } from '../harness/app/app.ts'
import type { FactorRequests } from '../harness/browser/factor-requests.ts'
import type { MakeRequest } from './route-requests.ts'

/** Input of a successful request to each route of second factors, in the order of the routes. */
export function buildFactorRouteRequests(
  factors: FactorRequests,
  anonymous: () => TestCall,
): Record<string, MakeRequest | undefined> {
  return {
    'login.factor': async () => ({ body: await factors.step(), call: anonymous() }),
    'second-factor.find-own': undefined,
    'totp-factor.create': async () => ({ call: (await factors.signIn()).call }),
    'totp-factor.confirm': () => factors.confirmation(),
    'totp-factor.delete': async () => ({ call: (await factors.withApp()).call }),
    'recovery-code.renew': async () => ({ call: (await factors.withApp()).call }),
    'session.step-up': () => factors.stepUp(),
    'passkey.begin': async () => ({ call: (await factors.signIn()).call }),
    'passkey.create': () => factors.registration(),
    'passkey.find-all': undefined,
    'passkey.delete': async () => {
      const { call, passkey } = await factors.withPasskey()
      return { call, params: { id: passkey } }
    },
    'login.passkey-options': () => ({ call: anonymous() }),
    'login.passkey': async () => ({ body: await factors.passkeyLogin(), call: anonymous() }),
    'login.factor-options': async () => ({
      body: { challenge: await factors.openStep(await factors.withPasskey()) },
      call: anonymous(),
    }),
    'session.step-up-options': async () => ({ call: (await factors.withPasskey()).call }),
    'user.remove-factors': async () => ({ params: { id: (await factors.withApp()).id } }),
  }
}
