import { addSite } from './add-site.ts'
import { buildService } from './build-service.ts'

/** Makes the service of a release with its site in the folder of the argument, not packed: the image is made of it. */
const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error('Name the folder: node tools/release/unpacked.ts <folder>')
await buildService(folder)
await addSite(folder)
