import { buildAuthenticationApp } from './authentication-app.ts'
import { callSignalbox } from './signalbox.ts'
import { buildTargetApp } from './target-app.ts'

/** Starts two apps on two domains that use the service at SIGNALBOX_URL. */
const service = process.env.SIGNALBOX_URL ?? 'http://localhost:3000'
const [portA, portB] = [Number(process.env.APP_A_PORT ?? 4001), Number(process.env.APP_B_PORT ?? 4002)]
const [a, b] = [`http://a.localhost:${portA}`, `http://b.localhost:${portB}`]
const signalbox = callSignalbox(service)

const target = await buildTargetApp({ service, signalbox, origin: b, authenticationOrigin: a })
await target.listen({ port: portB, host: '127.0.0.1' })
buildAuthenticationApp({ service, signalbox, origin: a, targetOrigin: b }).listen(portA, '127.0.0.1', () => {
  process.stdout.write(`App A, where users sign in: ${a}\nApp B, on another domain: ${b}\n`)
})
