import { createServer } from 'node:http'

/** A raw receiver in a process of its own: reads each body and answers 200. Prints its port as its first line. */
const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => response.writeHead(200, { 'content-length': 2 }).end('ok'))
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object' && address) console.log(address.port)
})
