// Loads the built package in a bare `vm` context and verifies one delivery there; run with --experimental-vm-modules.
// The context is what a worker surely has: WebCrypto, the text codecs and base64. No process, no Buffer, no require, no
// import of anything outside the folder, so a Node API in the package ends in an error here.
import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import { createContext, SourceTextModule } from 'node:vm'

const [distFolder, inputJson] = process.argv.slice(2)
const folder = pathToFileURL(`${distFolder}/`)
const context = createContext({ crypto: globalThis.crypto, TextEncoder, TextDecoder, atob, btoa, input: inputJson })
const modules = new Map()

/** Each module once, also where two others import it at the same time. */
async function loadModule(url) {
  if (!url.startsWith(folder.href)) throw new Error(`imports from outside the package: ${url}`)
  if (!modules.has(url)) modules.set(url, readModule(url))
  return modules.get(url)
}

const readModule = async (url) =>
  new SourceTextModule(await readFile(new URL(url), 'utf8'), { identifier: url, context })

const { names } = JSON.parse(inputJson)
const probe = new SourceTextModule(
  `import { checkDelivery } from './verify-delivery.js'
   ${names.map((name, index) => `import * as module${index} from './${name}.js'`).join('\n')}
   const { secret, body, headers, nowMs } = JSON.parse(input)
   const now = () => nowMs
   const genuine = await checkDelivery({ secret, body, headers, now })
   const bytes = await checkDelivery({ secret, body: new TextEncoder().encode(body), headers, now })
   const forged = await checkDelivery({ secret, body: body + ' ', headers, now })
   const loaded = [${names.map((_name, index) => `module${index}`).join(', ')}]
   export const answer = JSON.stringify({
     genuine: genuine.ok,
     bytes: bytes.ok,
     forged: forged.reason,
     loaded: loaded.map((module) => Object.keys(module).length > 0),
     bare: typeof process + typeof Buffer + typeof require,
   })`,
  { identifier: new URL('probe.js', folder).href, context },
)

function linkImport(specifier, referrer) {
  return loadModule(new URL(specifier, referrer.identifier).href)
}

await probe.link(linkImport)
await probe.evaluate()
process.stdout.write(probe.namespace.answer)
