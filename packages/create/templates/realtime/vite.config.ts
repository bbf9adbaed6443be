import { defineConfig } from 'vite'

/** The page and Signalbox have one origin: the server of the page passes calls of `/api/` on. */
const proxy = { '/api/': process.env.SIGNALBOX_URL ?? 'http://localhost:3000' }

/** One port, because Signalbox may list the origin of the page. */
const listen = { host: '127.0.0.1', port: Number(process.env.PORT ?? 4003), strictPort: true }

export default defineConfig({ server: { ...listen, proxy }, preview: { ...listen, proxy } })
